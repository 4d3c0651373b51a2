// SPDX-License-Identifier: Apache-2.0
// Runs inside a container, static and alone, and tries to escape: it prints one line per attempt, "name errno", 0 = success. Each
// attempt runs in its own process, so that a killed one is reported too. Where opening proves the point, nothing is written: a
// success does no harm to the machine. escape_live_test.cc has the expected results.
//   escape CANARY PID SOCKET KEY   a host file, a host process, an abstract socket and a shared memory segment of the host
//   escape read FILE               prints it: a program that, unlike busybox, keeps a supplementary group
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/kexec.h>
#include <linux/mount.h>
#include <linux/perf_event.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <asm/ldt.h>
#endif

namespace {

const char *canary, *host_pid, *host_socket, *host_key;

// Returns 0 if the attempt succeeded, otherwise the errno.
int outcome(long rc) { return rc >= 0 ? 0 : errno; }
int opens(const char* path, int flags = O_WRONLY) { return outcome(open(path, flags | O_CLOEXEC)); }
int has_content(const char* path) {  // a masked file is empty
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  char byte;
  ssize_t n = read(fd, &byte, 1);
  return n < 0 ? errno : n == 0 ? ENODATA : 0;
}
int has_entries(const char* path) {  // a masked directory is empty
  DIR* dir = opendir(path);
  if (!dir) return errno;
  while (dirent* entry = readdir(dir))
    if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) return 0;
  return ENODATA;
}
int device(mode_t kind, unsigned major, unsigned minor) {
  unlink("/tmp/node");
  if (mknod("/tmp/node", kind | 0666, makedev(major, minor)) != 0) return errno;
  int got = opens("/tmp/node", O_RDONLY | O_NONBLOCK | O_NOCTTY);
  unlink("/tmp/node");
  return got;
}
int reads_canary(const char* before) {
  char path[4096];
  snprintf(path, sizeof path, "%s%s", before, canary);
  return has_content(path);
}
int holds(int capability) {
  __user_cap_header_struct head{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2];
  if (syscall(SYS_capget, &head, data) != 0) return errno;
  return data[capability / 32].effective >> (capability % 32) & 1 ? 0 : EPERM;
}
int makes_namespace(int flag) {
  if (unshare(flag) == 0) return 0;
  int why = errno;
  long child = syscall(SYS_clone, flag | SIGCHLD, 0, 0, 0, 0);
  if (child == 0) _exit(0);
  return child > 0 ? 0 : why;
}
int joins(const char* path) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  return fd < 0 ? errno : outcome(setns(fd, 0));
}
#if defined(__x86_64__)
int from_32_bit(long number, long first = 0, long second = 0, long third = 0) {  // through the 32-bit system call entry
  long rc;
  asm volatile("int $0x80" : "=a"(rc) : "a"(number), "b"(first), "c"(second), "d"(third) : "memory", "r8", "r9", "r10", "r11");
  return rc < 0 ? int(-rc) : 0;
}
int from_x32(long number, long first = 0, long second = 0) { return outcome(syscall(0x40000000 + number, first, second)); }
#else
int from_32_bit(long, long = 0, long = 0, long = 0) { return ENOSYS; }
int from_x32(long, long = 0, long = 0) { return ENOSYS; }
#endif
#if defined(__x86_64__)
int alg_by_socketcall() {  // its arguments must have 32-bit addresses
  void* low = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
  if (low == MAP_FAILED) return errno;
  unsigned* args = static_cast<unsigned*>(low);
  args[0] = 38, args[1] = SOCK_SEQPACKET, args[2] = 0;
  return from_32_bit(102, 1, long(args));
}
#else
int alg_by_socketcall() { return ENOSYS; }
#endif

int sets_link_down() {
  int fd = socket(AF_INET, SOCK_DGRAM, 0);
  ifreq request{};
  strcpy(request.ifr_name, "lo");
  if (ioctl(fd, SIOCGIFFLAGS, &request) != 0) return errno;
  return outcome(ioctl(fd, SIOCSIFFLAGS, &request));  // sets the flags unchanged
}
int leaves_chroot() {
  mkdir("/tmp/jail", 0755);
  int here = open("/", O_RDONLY | O_DIRECTORY);
  if (chroot("/tmp/jail") != 0) return errno;
  if (fchdir(here) != 0) return errno;
  for (int i = 0; i < 64; ++i)
    if (chdir("..") != 0) return errno;
  if (chroot(".") != 0) return errno;
  return reads_canary("");
}
int leaked_descriptor() {
  for (int fd = 3; fd < 1024; ++fd)
    if (fcntl(fd, F_GETFD) >= 0) return 0;
  return EBADF;
}
int climbs_from_descriptor() {
  for (int fd = 0; fd < 1024; ++fd) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d/../../../../../../../../..", fd);
    if (reads_canary(path) == 0) return 0;
  }
  return ENOENT;
}
int writes_a_cgroup() {
  FILE* mounts = fopen("/proc/self/mounts", "re");
  char source[256], place[4096], type[64], rest[4096];
  int got = ENOENT;
  while (mounts && fscanf(mounts, "%255s %4095s %63s %4095[^\n]", source, place, type, rest) == 4) {
    if (strncmp(type, "cgroup", 6) != 0) continue;
    char made[4200];
    snprintf(made, sizeof made, "%s/escape", place);
    if (mkdir(made, 0755) == 0) return rmdir(made), 0;
    got = errno;
  }
  return got;
}
int sees_kernel_addresses() {
  FILE* symbols = fopen("/proc/kallsyms", "re");
  if (!symbols) return errno;
  unsigned long long address, any = 0;
  char line[512];
  for (int i = 0; i < 100 && fgets(line, sizeof line, symbols); ++i)
    if (sscanf(line, "%llx", &address) == 1) any |= address;
  return any ? 0 : ENODATA;
}
int sees_frame_numbers() {
  int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  unsigned long long entry = 0;
  if (fd < 0 || pread(fd, &entry, 8, off_t((unsigned long)&canary / 4096 * 8)) != 8) return errno ? errno : EIO;
  return entry & ((1ull << 55) - 1) ? 0 : ENODATA;
}
int opens_by_handle() {  // like the exploit "shocker": inode 2 of the root's file system
  struct {
    unsigned bytes;
    int type;
    unsigned long long inode;
  } handle{8, 1, 2};
  int fd = open("/", O_RDONLY | O_CLOEXEC);
  return outcome(syscall(SYS_open_by_handle_at, fd, &handle, O_RDONLY));
}
int raises_limit() {
  rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  ++limit.rlim_max;
  return outcome(setrlimit(RLIMIT_NOFILE, &limit));
}
int lowers_oom_score() {
  int fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
  return fd < 0 ? errno : outcome(write(fd, "-1000", 5));
}
int runs_in_real_time() {
  sched_param param{1};
  return outcome(sched_setscheduler(0, SCHED_FIFO, &param));
}
int sets_clock() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return outcome(clock_settime(CLOCK_REALTIME, &now));
}
int adjusts_clock() {
  timex same{};
  if (adjtimex(&same) < 0) return errno;
  same.modes = ADJ_OFFSET;
  same.offset = 0;
  return outcome(adjtimex(&same));
}
int connects_to_host() {
  int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  strncpy(address.sun_path + 1, host_socket, sizeof address.sun_path - 2);
  return outcome(connect(fd, reinterpret_cast<sockaddr*>(&address), socklen_t(sizeof(sa_family_t) + 1 + strlen(host_socket))));
}
int to_child(int (*work)(pid_t child)) {
  pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  int got = work(child);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  return got;
}
int reads_child(pid_t child) {
  char byte;
  iovec to{&byte, 1}, from{const_cast<char*>(canary), 1};
  return outcome(process_vm_readv(child, &to, 1, &from, 1, 0));
}
int traces_child(pid_t child) { return outcome(ptrace(PTRACE_SEIZE, child, nullptr, nullptr)); }
int takes_descriptor(pid_t child) {
  int fd = int(syscall(SYS_pidfd_open, child, 0));
  return fd < 0 ? errno : outcome(syscall(SYS_pidfd_getfd, fd, 0, 0));
}
int perf() {
  perf_event_attr about{};
  about.size = sizeof about;
  about.type = PERF_TYPE_SOFTWARE;
  about.config = PERF_COUNT_SW_TASK_CLOCK;
  return outcome(syscall(SYS_perf_event_open, &about, 0, -1, -1, 0));
}
int loads_program() {  // creating a map is the simplest bpf operation
  unsigned attributes[32] = {2, 4, 4, 1};
  return outcome(syscall(SYS_bpf, 0, attributes, sizeof attributes));
}
int types_into(int fd) {
  char letter = 'x';
  return outcome(ioctl(fd, TIOCSTI, &letter));
}
int remounts(const char* place) { return outcome(mount("", place, nullptr, MS_REMOUNT | MS_BIND, nullptr)); }
int kexecs() { return outcome(syscall(SYS_kexec_load, 0, 0, nullptr, 0)); }
int rings() {
  char parameters[256] = {};
  return outcome(syscall(425 /* io_uring_setup */, 1, parameters));
}
int namespace_by_clone3() {
  unsigned long long arguments[11] = {CLONE_NEWUSER};
  arguments[4] = SIGCHLD;
  long child = syscall(435, arguments, sizeof arguments);
  if (child == 0) _exit(0);
  return outcome(child);
}

struct Attempt {
  const char* name;
  int (*run)();
};
#define TRY_TO(name, expression)         \
  {                                      \
    name, [] { return int(expression); } \
  }
const Attempt kAttempts[] = {
    // sockets
    TRY_TO("socket raw", outcome(socket(AF_INET, SOCK_RAW, 1))),
    TRY_TO("socket packet", outcome(socket(AF_PACKET, SOCK_RAW, 0))),
    TRY_TO("socket vsock", outcome(socket(40, SOCK_STREAM, 0))),
    TRY_TO("socket vsock, high bit", outcome(syscall(SYS_socket, 0x100000028, SOCK_STREAM, 0))),
    TRY_TO("socket alg", outcome(socket(38, SOCK_SEQPACKET, 0))),
    TRY_TO("socket alg, high bit", outcome(syscall(SYS_socket, 0x100000026, SOCK_SEQPACKET, 0))),
    TRY_TO("socket alg, 32-bit socketcall", alg_by_socketcall()),
    TRY_TO("socket alg, 32-bit socket", from_32_bit(359, 38, SOCK_SEQPACKET)),
    TRY_TO("link state", sets_link_down()),
    TRY_TO("host's abstract socket", connects_to_host()),
    TRY_TO("host's shared memory", outcome(shmget(key_t(strtol(host_key, nullptr, 0)), 0, 0))),
    // writable files of procfs and sysfs
    TRY_TO("write sysrq-trigger", opens("/proc/sysrq-trigger")),
    TRY_TO("write core_pattern", opens("/proc/sys/kernel/core_pattern")),
    TRY_TO("write modprobe", opens("/proc/sys/kernel/modprobe")),
    TRY_TO("write hostname", opens("/proc/sys/kernel/hostname")),
    TRY_TO("write panic_on_oom", opens("/proc/sys/vm/panic_on_oom")),
    TRY_TO("write ip_forward", opens("/proc/sys/net/ipv4/ip_forward")),
    TRY_TO("write file-max", opens("/proc/sys/fs/file-max")),
    TRY_TO("write binfmt_misc", opens("/proc/sys/fs/binfmt_misc/register")),
    TRY_TO("write irq affinity", opens("/proc/irq/default_smp_affinity")),
    TRY_TO("write fs in proc", outcome(mkdir("/proc/fs/x", 0755))),
    TRY_TO("write uevent_helper", opens("/sys/kernel/uevent_helper")),
    TRY_TO("write profiling", opens("/sys/kernel/profiling")),
    TRY_TO("write hugepages", opens("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages")),
    TRY_TO("write thp", opens("/sys/kernel/mm/transparent_hugepage/enabled")),
    TRY_TO("write power state", opens("/sys/power/state")),
    TRY_TO("write cpu online", opens("/sys/devices/system/cpu/cpu1/online")),
    TRY_TO("write module parameter", opens("/sys/module/kernel/parameters/panic")),
    TRY_TO("write lo's uevent", opens("/sys/class/net/lo/uevent")),
    TRY_TO("write cgroup.procs", opens("/sys/fs/cgroup/cgroup.procs")),
    TRY_TO("write memory.max", opens("/sys/fs/cgroup/memory.max")),
    TRY_TO("write release_agent", opens("/sys/fs/cgroup/release_agent")),
    TRY_TO("make a cgroup", writes_a_cgroup()),
    // … and readable ones
    TRY_TO("read kcore", has_content("/proc/kcore")),
    TRY_TO("read keys", has_content("/proc/keys")),
    TRY_TO("read timer_list", has_content("/proc/timer_list")),
    TRY_TO("read timer_stats", has_content("/proc/timer_stats")),
    TRY_TO("read interrupts", has_content("/proc/interrupts")),
    TRY_TO("read latency_stats", has_content("/proc/latency_stats")),
    TRY_TO("read sched_debug", has_content("/proc/sched_debug")),
    TRY_TO("read kmsg", opens("/proc/kmsg", O_RDONLY | O_NONBLOCK)),
    TRY_TO("read kpagecount", opens("/proc/kpagecount", O_RDONLY)),
    TRY_TO("list acpi", has_entries("/proc/acpi")),
    TRY_TO("list asound", has_entries("/proc/asound")),
    TRY_TO("list scsi", has_entries("/proc/scsi")),
    TRY_TO("list firmware", has_entries("/sys/firmware")),
    TRY_TO("list powercap", has_entries("/sys/devices/virtual/powercap")),
    TRY_TO("list thermal_throttle", has_entries("/sys/devices/system/cpu/cpu0/thermal_throttle")),
    TRY_TO("list debugfs", has_entries("/sys/kernel/debug")),
    TRY_TO("list tracefs", has_entries("/sys/kernel/tracing")),
    TRY_TO("list securityfs", has_entries("/sys/kernel/security")),
    TRY_TO("kernel addresses", sees_kernel_addresses()),
    TRY_TO("page frame numbers", sees_frame_numbers()),
    // devices
    TRY_TO("node null", device(S_IFCHR, 1, 3)),
    TRY_TO("node mem", device(S_IFCHR, 1, 1)),
    TRY_TO("node port", device(S_IFCHR, 1, 4)),
    TRY_TO("node kmsg", device(S_IFCHR, 1, 11)),
    TRY_TO("node console", device(S_IFCHR, 5, 1)),
    TRY_TO("node tty1", device(S_IFCHR, 4, 1)),
    TRY_TO("node fuse", device(S_IFCHR, 10, 229)),
    TRY_TO("node tun", device(S_IFCHR, 10, 200)),
    TRY_TO("node kvm", device(S_IFCHR, 10, 232)),
    TRY_TO("node loop-control", device(S_IFCHR, 10, 237)),
    TRY_TO("node loop0", device(S_IFBLK, 7, 0)),
    TRY_TO("node sda", device(S_IFBLK, 8, 0)),
    TRY_TO("node vda", device(S_IFBLK, 254, 0)),
    TRY_TO("node nvme", device(S_IFBLK, 259, 0)),
    // mounts
    TRY_TO("mount tmpfs", outcome(mount("x", "/tmp", "tmpfs", 0, nullptr))),
    TRY_TO("mount proc", outcome(mount("x", "/tmp", "proc", 0, nullptr))),
    TRY_TO("mount sysfs", outcome(mount("x", "/tmp", "sysfs", 0, nullptr))),
    TRY_TO("mount cgroup", outcome(mount("x", "/tmp", "cgroup", 0, "memory"))),
    TRY_TO("mount cgroup2", outcome(mount("x", "/tmp", "cgroup2", 0, nullptr))),
    TRY_TO("mount bind", outcome(mount("/", "/tmp", nullptr, MS_BIND, nullptr))),
    TRY_TO("mount shared", outcome(mount("", "/", nullptr, MS_SHARED | MS_REC, nullptr))),
    TRY_TO("remount proc/sys", remounts("/proc/sys")),
    TRY_TO("remount sys", remounts("/sys")),
    TRY_TO("remount cgroup", remounts("/sys/fs/cgroup")),
    TRY_TO("umount a mask", outcome(umount2("/proc/keys", MNT_DETACH))),
    TRY_TO("umount proc/sys", outcome(umount2("/proc/sys", MNT_DETACH))),
    TRY_TO("fsopen", outcome(syscall(430, "tmpfs", 0))),
    TRY_TO("fspick", outcome(syscall(433, AT_FDCWD, "/", 0))),
    TRY_TO("open_tree", outcome(syscall(428, AT_FDCWD, "/", OPEN_TREE_CLONE))),
    TRY_TO("move_mount", outcome(syscall(429, AT_FDCWD, "/tmp", AT_FDCWD, "/etc", 0))),
    TRY_TO("mount_setattr",
           outcome(syscall(442, AT_FDCWD, "/", 0, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 32))),
    TRY_TO("pivot_root", outcome(syscall(SYS_pivot_root, "/tmp", "/tmp"))),
    TRY_TO("chroot", outcome(chroot("/"))),
    TRY_TO("leave by chroot", leaves_chroot()),
    TRY_TO("host's file by path", reads_canary("")),
    TRY_TO("host's file by dots", reads_canary("/../../../../../..")),
    TRY_TO("host's file by init's root", reads_canary("/proc/1/root")),
    TRY_TO("host's file by init's cwd", reads_canary("/proc/1/cwd/../../../../../..")),
    TRY_TO("host's file by a descriptor", climbs_from_descriptor()),
    TRY_TO("leaked descriptor", leaked_descriptor()),
    TRY_TO("open_by_handle_at", opens_by_handle()),
    // processes and namespaces
    TRY_TO("host's process", outcome(kill(atoi(host_pid), 0))),
    TRY_TO("ptrace a child", to_child(traces_child)),
    TRY_TO("process_vm_readv", to_child(reads_child)),
    TRY_TO("pidfd_getfd", to_child(takes_descriptor)),
    TRY_TO("kcmp", outcome(syscall(SYS_kcmp, getpid(), getpid(), 0, 0, 0))),
    TRY_TO("process_madvise", outcome(syscall(440, -1, nullptr, 0, 0, 0)) == EPERM ? EPERM : 0),
    TRY_TO("unshare user", makes_namespace(CLONE_NEWUSER)),
    TRY_TO("unshare mount", makes_namespace(CLONE_NEWNS)),
    TRY_TO("unshare pid", makes_namespace(CLONE_NEWPID)),
    TRY_TO("unshare network", makes_namespace(CLONE_NEWNET)),
    TRY_TO("unshare ipc", makes_namespace(CLONE_NEWIPC)),
    TRY_TO("unshare uts", makes_namespace(CLONE_NEWUTS)),
    TRY_TO("unshare cgroup", makes_namespace(CLONE_NEWCGROUP)),
    TRY_TO("unshare time", outcome(unshare(0x80))),
    TRY_TO("clone3 user", namespace_by_clone3()),
    TRY_TO("setns mount", joins("/proc/1/ns/mnt")),
    TRY_TO("setns network", joins("/proc/1/ns/net")),
    TRY_TO("setns user", joins("/proc/1/ns/user")),
    TRY_TO("real-time scheduling", runs_in_real_time()),
    TRY_TO("higher priority", outcome(setpriority(PRIO_PROCESS, 0, -20))),
    TRY_TO("higher limit", raises_limit()),
    TRY_TO("lower oom score", lowers_oom_score()),
    TRY_TO("type into the terminal", types_into(0)),
    // kernel interfaces
    TRY_TO("add_key", outcome(syscall(SYS_add_key, "user", "x", "x", 1, -3))),
    TRY_TO("keyctl", outcome(syscall(SYS_keyctl, 0, -3, 0))),
    TRY_TO("request_key", outcome(syscall(SYS_request_key, "user", "x", nullptr, 0)) == EPERM ? EPERM : 0),
    TRY_TO("bpf", loads_program()),
    TRY_TO("perf_event_open", perf()),
    TRY_TO("userfaultfd", outcome(syscall(SYS_userfaultfd, 1))),
    TRY_TO("fanotify_init", outcome(fanotify_init(0, O_RDONLY))),
    TRY_TO("io_uring_setup", rings()),
    TRY_TO("kexec_load", kexecs()),
    TRY_TO("kexec_file_load", outcome(syscall(SYS_kexec_file_load, -1, -1, 0, nullptr, 0))),
    TRY_TO("init_module", outcome(syscall(SYS_init_module, "", 0, ""))),
    TRY_TO("finit_module", outcome(syscall(SYS_finit_module, 0, "", 0))),
    TRY_TO("delete_module", outcome(syscall(SYS_delete_module, "no_such_module", 0))),
    TRY_TO("syslog", outcome(syscall(SYS_syslog, 10, nullptr, 0))),
    TRY_TO("quotactl", outcome(syscall(SYS_quotactl, 0, "/dev/vda", 0, nullptr)) == EPERM ? EPERM : 0),
    TRY_TO("swapon", outcome(syscall(SYS_swapon, "/bin", 0))),
    TRY_TO("swapoff", outcome(syscall(SYS_swapoff, "/bin"))),
    TRY_TO("reboot", outcome(syscall(SYS_reboot, 0xfee1dead, 672274793, 0x89abcdef, nullptr))),
    TRY_TO("settimeofday", outcome(settimeofday(nullptr, nullptr))),
    TRY_TO("clock_settime", sets_clock()),
    TRY_TO("adjtimex", adjusts_clock()),
    TRY_TO("acct", outcome(acct(nullptr))),
    TRY_TO("personality 0", outcome(syscall(SYS_personality, 0))),
    TRY_TO("personality ADDR_NO_RANDOMIZE", outcome(syscall(SYS_personality, 0x40000))),
    TRY_TO("personality READ_IMPLIES_EXEC", outcome(syscall(SYS_personality, 0x400000))),
    TRY_TO("lookup_dcookie", outcome(syscall(SYS_lookup_dcookie, 0ull, nullptr, 0)) == EPERM ? EPERM : 0),
    TRY_TO("sethostname", outcome(sethostname("evil", 4))),
    TRY_TO("setdomainname", outcome(setdomainname("evil", 4))),
    TRY_TO("vhangup", outcome(vhangup())),
    TRY_TO("set_mempolicy", outcome(syscall(SYS_set_mempolicy, 0, nullptr, 0))),
    TRY_TO("mbind", outcome(syscall(SYS_mbind, nullptr, 0, 0, nullptr, 0, 0))),
    TRY_TO("move_pages", outcome(syscall(SYS_move_pages, 0, 0, nullptr, nullptr, nullptr, 0))),
    TRY_TO("migrate_pages", outcome(syscall(SYS_migrate_pages, 0, 0, nullptr, nullptr))),
    TRY_TO("nfsservctl", outcome(syscall(SYS_nfsservctl, 0, nullptr, nullptr))),
    TRY_TO("lsm_list_modules", outcome(syscall(461, nullptr, nullptr, 1)) == EINVAL ? 0 : EPERM),
    TRY_TO("name_to_handle_at", outcome(syscall(SYS_name_to_handle_at, AT_FDCWD, "/", nullptr, nullptr, 0)) == EPERM ? EPERM : 0),
    TRY_TO("memfd_create", outcome(memfd_create("x", 0))),
#if defined(__x86_64__)
    TRY_TO("iopl", outcome(syscall(SYS_iopl, 3))),
    TRY_TO("ioperm", outcome(syscall(SYS_ioperm, 0x80, 1, 1))),
    TRY_TO("ustat", outcome(syscall(SYS_ustat, 0, nullptr)) == EPERM ? EPERM : 0),
    TRY_TO("sysfs", outcome(syscall(SYS_sysfs, 3))),
    TRY_TO("modify_ldt", outcome(syscall(SYS_modify_ldt, 0, nullptr, 0))),
    TRY_TO("32-bit mount", from_32_bit(21)),
    TRY_TO("32-bit unshare", from_32_bit(310, CLONE_NEWUSER)),
    TRY_TO("32-bit clone user", from_32_bit(120, CLONE_NEWUSER | CLONE_NEWNS | SIGCHLD)),
    TRY_TO("32-bit setns", from_32_bit(346)),
    TRY_TO("32-bit keyctl", from_32_bit(288, 0, -3)),
    TRY_TO("32-bit bpf", from_32_bit(357)),
    TRY_TO("32-bit reboot", from_32_bit(88, 0xfee1dead, 672274793, 0x89abcdef)),
    TRY_TO("32-bit init_module", from_32_bit(128)),
    TRY_TO("32-bit open_by_handle_at", from_32_bit(342)),
    TRY_TO("32-bit vm86", from_32_bit(113)),
    TRY_TO("32-bit getpid", from_32_bit(20)),
    TRY_TO("x32 unshare", from_x32(272, CLONE_NEWUSER)),
    TRY_TO("x32 mount", from_x32(165)),
    TRY_TO("x32 keyctl", from_x32(250)),
    TRY_TO("x32 bpf", from_x32(321)),
#endif
};

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && strcmp(argv[1], "read") == 0) {
    int fd = open(argv[2], O_RDONLY);
    if (fd < 0) return perror(argv[2]), 1;
    char text[4096];
    for (ssize_t n; (n = read(fd, text, sizeof text)) > 0;)
      if (write(1, text, size_t(n)) != n) return 1;
    return 0;
  }
  if (argc != 5) return 2;
  canary = argv[1], host_pid = argv[2], host_socket = argv[3], host_key = argv[4];
  auto try_it = [](const char* name, int (*run)(int), int argument) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
      alarm(10);
      _exit(run(argument));
    }
    int status = 0;
    waitpid(child, &status, 0);
    int got = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
    printf("%s\t%d\t%s\n", name, got, got == 0 ? "got through" : got > 1000 ? "was killed" : strerror(got));
  };
  for (size_t i = 0; i < sizeof kAttempts / sizeof *kAttempts; ++i)
    try_it(
        kAttempts[i].name, [](int index) { return kAttempts[index].run(); }, int(i));
  for (int capability = 0; capability <= 40; ++capability) {
    char name[32];
    snprintf(name, sizeof name, "capability %d", capability);
    try_it(name, holds, capability);
  }
  return 0;
}

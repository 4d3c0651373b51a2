// SPDX-License-Identifier: Apache-2.0
// What a container can see and do: namespaces, mounts, masked paths, privileges and limits, as seen from inside.
#include <gtest/gtest.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "runtime/base/thread.h"
#include "runtime/oci/capabilities.h"
#include "runtime/sys/process.h"
#include "tests/runtime/container/live_pod.h"
#include "tests/runtime/expect.h"

namespace coracle::runtime {
namespace {

class ConfinementLive : public LivePod {
 protected:
  void SetUp() override {
    if (std::string why = LiveRuntime::missing(); !why.empty()) GTEST_SKIP() << why;
    fixture_ = std::make_unique<LiveRuntime>();
    ASSERT_OK(fixture_->open());
    SandboxSpec spec;
    spec.id = "pod";
    spec.hostname = "web-0";
    ASSERT_OK(runtime().create_sandbox(spec));
  }
};

TEST_F(ConfinementLive, has_namespaces_of_its_own) {
  std::string inside = sh("for n in net ipc uts mnt pid cgroup user; do readlink /proc/self/ns/$n; done");
  auto lines = split(trim(inside), '\n');
  ASSERT_EQ(lines.size(), 7u) << inside;
  const char* names[] = {"net", "ipc", "uts", "mnt", "pid", "cgroup", "user"};
  for (int i = 0; i < 7; ++i) {
    char host[128];
    ssize_t n = ::readlink((std::string("/proc/self/ns/") + names[i]).c_str(), host, sizeof host);
    ASSERT_GT(n, 0);
    EXPECT_EQ(lines[size_t(i)] == std::string_view(host, size_t(n)), i == 6) << names[i];
  }
  EXPECT_EQ(sh("hostname"), "web-0\n");
  EXPECT_EQ(sh("echo $$"), "1\n");
  EXPECT_EQ(sh("cat /proc/1/cgroup | grep ^0::"), "0::/\n");
}

TEST_F(ConfinementLive, shares_network_and_names_within_the_pod_but_not_processes) {
  std::string one = run(fixture_->shell("one-0", "for n in net ipc uts; do readlink /proc/self/ns/$n; done"));
  std::string two = run(fixture_->shell("two-0", "for n in net ipc uts; do readlink /proc/self/ns/$n; done"));
  EXPECT_EQ(one, two);
  // At the same time: the kernel gives the number of a namespace again when it is gone.
  ASSERT_OK(runtime().start_container("pod", fixture_->shell("one-1", "exec sleep 1000")));
  std::string processes = "/proc/" + std::to_string(runtime().sandbox("pod")->containers.front().pid) + "/ns/pid";
  char link[128];
  ssize_t size = ::readlink(processes.c_str(), link, sizeof link);
  ASSERT_GT(size, 0);
  EXPECT_NE(run(fixture_->shell("two-0", "readlink /proc/self/ns/pid")), std::string(link, size_t(size)) + "\n");
  run(fixture_->shell("one-0", "echo shared > /dev/shm/note"));
  EXPECT_EQ(run(fixture_->shell("two-0", "cat /dev/shm/note")), "shared\n");
  EXPECT_NE(sh("ip addr show lo").find("UP"), std::string::npos);
}

TEST_F(ConfinementLive, may_see_the_processes_of_another_container) {
  ASSERT_OK(runtime().start_container("pod", fixture_->shell("main-0", "exec sleep 1000")));
  // A new process has no command line at first: its descriptors are closed earlier.
  ContainerSpec spec = fixture_->shell("look-0",
                                       "while [ -z \"$(tr '\\0' ' ' < /proc/1/cmdline)\" ]; do sleep 0.1; done; "
                                       "tr '\\0' ' ' < /proc/1/cmdline; echo; test $$ = 1 || echo not the first");
  spec.target = "main-0";
  std::string out = run(spec);
  EXPECT_NE(out.find("sleep 1000"), std::string::npos) << out;
  EXPECT_NE(out.find("not the first\n"), std::string::npos) << out;
  EXPECT_EQ(sh("echo $$"), "1\n") << "others have their own";
  spec.id = "look-1";
  spec.target = "none-0";
  auto refused = runtime().start_container("pod", spec);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().text().find("the container is not running"), std::string::npos) << refused.error().text();
}

TEST_F(ConfinementLive, sees_only_its_root) {
  EXPECT_EQ(sh("ls /"), "bin\ndev\netc\nproc\nsys\ntmp\n");
  EXPECT_EQ(sh("grep -c 'coracle-live' /proc/self/mounts", 1), "0\n");
  // The host's and pause's mount trees are not reachable.
  EXPECT_EQ(sh("ls /../../.. | head -1"), "bin\n");
  EXPECT_EQ(sh("ls /proc/self/fd | tr '\\n' ' '"), "0 1 2 3 ");  // 3 is ls reading the directory
}

TEST_F(ConfinementLive, hides_what_the_specification_hides) {
  EXPECT_EQ(sh("cat /proc/keys /proc/timer_list /proc/interrupts | wc -c"), "0\n");
  EXPECT_EQ(sh("ls /sys/firmware"), "");
  EXPECT_NE(sh("touch /sys/firmware/x", 1).find("Read-only"), std::string::npos);
  EXPECT_NE(sh("echo 1 > /proc/sys/kernel/panic", 1).find("Read-only"), std::string::npos);
  EXPECT_EQ(sh("grep -c ' /proc/irq proc ro' /proc/mounts"), "1\n");
  EXPECT_NE(sh("mkdir /sys/fs/cgroup/x", 1).find("Read-only"), std::string::npos);
  EXPECT_NE(sh("touch /sys/x", 1).find("Read-only"), std::string::npos);
}

TEST_F(ConfinementLive, has_the_promised_devices_and_no_others) {
  EXPECT_EQ(sh("echo x > /dev/null; head -c 3 /dev/zero | wc -c; head -c 3 /dev/urandom | wc -c; ls /dev | tr '\\n' ' '"),
            "3\n3\ncore fd full mqueue null ptmx pts random shm stderr stdin stdout tty urandom zero ");
  // CAP_MKNOD permits creating the node; the cgroup's device filter forbids using it.
  EXPECT_NE(sh("mknod /tmp/disk b 254 0 && head -c 1 /tmp/disk", 1).find("not permitted"), std::string::npos);
  EXPECT_NE(sh("mknod /tmp/kmsg c 1 11 && head -c 1 /tmp/kmsg", 1).find("not permitted"), std::string::npos);
  EXPECT_EQ(sh("mknod /tmp/zero c 1 5 && head -c 1 /tmp/zero | wc -c"), "1\n");
}

// A named session keyring is joined if there is one that may be searched, whoever has made it.
TEST_F(ConfinementLive, joins_no_keyring_that_another_has_made_for_it) {
  if (::syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, "lured-0") < 0) GTEST_SKIP() << "the kernel has no keyrings";
  ASSERT_EQ(::syscall(SYS_keyctl, KEYCTL_SETPERM, KEY_SPEC_SESSION_KEYRING, 0x3f3f3f3f), 0);  // all for everybody
  ASSERT_OK(runtime().start_container("pod", fixture_->shell("lured-0", "exec sleep 1000")));
  ExecSpec beside;
  beside.args = {"/bin/sh", "-c", "echo in; exec sleep 1000"};
  auto exec = MUST(runtime().exec("pod", "lured-0", beside));
  const std::string keys = MUST(sys::read_file("/proc/keys"));
  size_t rings = 0;
  for (std::string_view line : split(keys, '\n')) rings += line.find(" lured-0:") != line.npos;
  EXPECT_EQ(rings, 3u) << "ours, the container's and the exec's: " << keys;
  EXPECT_GT(::syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nullptr), 0);
}

TEST_F(ConfinementLive, holds_exactly_the_capabilities_it_was_given) {
  std::string status = sh("grep Cap /proc/self/status");
  uint64_t want = MUST(oci::capability_set(oci::default_spec().process.capabilities->bounding));
  char text[32];
  std::snprintf(text, sizeof text, "%016lx", (unsigned long)want);
  EXPECT_EQ(status, std::string("CapInh:\t0000000000000000\nCapPrm:\t") + text + "\nCapEff:\t" + text + "\nCapBnd:\t" + text +
                        "\nCapAmb:\t0000000000000000\n");
  ContainerSpec none = fixture_->shell("app-0", "grep -E 'Cap(Prm|Eff|Bnd)' /proc/self/status");
  none.spec.process.capabilities = oci::Capabilities{};
  EXPECT_EQ(run(none), "CapPrm:\t0000000000000000\nCapEff:\t0000000000000000\nCapBnd:\t0000000000000000\n");
  ContainerSpec ambient = fixture_->shell("app-0", "grep -E 'Cap(Eff|Amb)' /proc/self/status");
  for (auto* list : {&ambient.spec.process.capabilities->inheritable, &ambient.spec.process.capabilities->ambient})
    *list = {"CAP_NET_BIND_SERVICE"};
  ambient.spec.process.user.uid = 1000;
  EXPECT_EQ(run(ambient), "CapEff:\t0000000000000400\nCapAmb:\t0000000000000400\n");
}

TEST_F(ConfinementLive, hears_signals_that_the_daemon_ignores) {
  auto before = ::signal(SIGPIPE, SIG_IGN);
  SandboxSpec spec;
  spec.id = "deaf";
  ASSERT_OK(runtime().create_sandbox(spec));
  ::signal(SIGPIPE, before);
  const std::vector<std::string> look{"/bin/grep", "-E", "SigBlk|SigIgn",
                                      "/proc/self/status"};  // not by a shell, which ignores some signals itself
  const char* none = "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n";
  ContainerSpec first = fixture_->shell("app-0", "");
  first.spec.process.args = look;
  EXPECT_EQ(run(first, 0, "deaf"), none);
  ASSERT_OK(runtime().start_container("deaf", fixture_->shell("app-1", "sleep 1000")));
  ExecSpec beside;
  beside.args = look;
  auto exec = MUST(runtime().exec("deaf", "app-1", beside));
  EXPECT_EQ(MUST(sys::read_all(exec->take_stdout())), none);
}

TEST_F(ConfinementLive, runs_under_seccomp) {
  EXPECT_EQ(sh("grep -E '^Seccomp:|NoNewPrivs' /proc/self/status"), "NoNewPrivs:\t0\nSeccomp:\t2\n");
  EXPECT_NE(sh("unshare -U true", 1).find("not permitted"), std::string::npos);
  EXPECT_NE(sh("mount -t tmpfs none /tmp", 1).find("ermission"), std::string::npos);
  ContainerSpec admin = fixture_->shell("app-0", "mount -t tmpfs none /tmp && echo mounted");
  for (auto* list : {&admin.spec.process.capabilities->bounding, &admin.spec.process.capabilities->effective,
                     &admin.spec.process.capabilities->permitted})
    list->push_back("CAP_SYS_ADMIN");
  EXPECT_EQ(run(admin), "mounted\n");  // the seccomp profile depends on the capabilities
  ContainerSpec free = fixture_->shell("app-0", "grep ^Seccomp: /proc/self/status");
  free.spec.linux_.seccomp.reset();
  EXPECT_EQ(run(free), "Seccomp:\t0\n");
}

TEST_F(ConfinementLive, takes_on_user_groups_and_no_new_privileges) {
  ContainerSpec spec = fixture_->shell(
      "app-0", "id; grep -E '^Groups|NoNewPrivs|^Seccomp:' /proc/self/status; grep CapEff /proc/self/status; umask");
  spec.spec.process.user.uid = 1000;
  spec.spec.process.user.gid = 2000;
  spec.spec.process.user.additional_gids = {3000, 4000};
  spec.spec.process.user.umask = 027;
  spec.spec.process.no_new_privileges = true;
  EXPECT_EQ(run(spec),
            "uid=1000(user) gid=2000 groups=3000,4000\nGroups:\t3000 4000 "
            "\nNoNewPrivs:\t1\nSeccomp:\t2\nCapEff:\t0000000000000000\n0027\n");
  EXPECT_EQ(sh("grep ^Groups /proc/self/status"), "Groups:\t \n");  // without the daemon's supplementary groups
}

TEST_F(ConfinementLive, makes_its_working_directory_inside_the_root) {
  ContainerSpec spec = fixture_->shell("app-0", "pwd");
  spec.spec.process.cwd = "/srv/app";
  EXPECT_EQ(run(spec), "/srv/app\n");
  // A link cannot lead out of the root, and the working directory cannot be a leaked descriptor (CVE-2024-21626).
  ASSERT_EQ(::symlink("/etc/../../../../../tmp/coracle-evil", (fixture_->rootfs() + "/evil").c_str()), 0);
  spec.spec.process.cwd = "/evil/dir";
  run(spec);
  EXPECT_FALSE(sys::exists("/tmp/coracle-evil"));
  spec.spec.process.cwd = "/proc/self/fd/7";
  EXPECT_NE(run(spec).find("start: "), std::string::npos);
}

TEST_F(ConfinementLive, mounts_what_it_is_told) {
  MUST(sys::make_directories(fixture_->path() + "/volume/deep"));
  MUST(sys::replace_file(fixture_->path() + "/volume/file", "content\n", 0644));
  ContainerSpec spec =
      fixture_->shell("app-0",
                      "cat /data/file /etc/note; touch /data/made; touch /ro/made; touch /ro/deep/made; "
                      "grep -E ' (/scratch|/tmpl) ' /proc/mounts | tr -s ' ' | head -1; df /scratch | grep -c 1024");
  auto bind = [&](const std::string& source, const std::string& destination, std::vector<std::string> options) {
    oci::Mount mount;
    mount.type = "bind";
    mount.source = source;
    mount.destination = destination;
    mount.options = std::move(options);
    spec.spec.mounts.push_back(mount);
  };
  bind(fixture_->path() + "/volume", "/data", {"rbind"});
  bind(fixture_->path() + "/volume/file", "/etc/note", {"bind", "ro"});
  bind(fixture_->path() + "/volume", "/ro", {"rbind", "rro"});
  oci::Mount scratch;
  scratch.type = "tmpfs";
  scratch.source = "tmpfs";
  scratch.destination = "/scratch";
  scratch.options = {"size=1m", "mode=1777", "nosuid"};
  spec.spec.mounts.push_back(scratch);
  std::string out = run(spec);
  EXPECT_TRUE(out.starts_with("content\ncontent\ntmpfs /scratch tmpfs rw,nosuid,relatime,size=1024k")) << out;
  EXPECT_NE(out.find("/ro/made: Read-only"), std::string::npos) << out;
  EXPECT_NE(out.find("/ro/deep/made: Read-only"), std::string::npos) << out;
  EXPECT_TRUE(sys::exists(fixture_->path() + "/volume/made"));
  // A mount by descriptor, as the agent passes volumes; it takes precedence over the path.
  auto fd = std::make_shared<const Fd>(MUST(sys::open(fixture_->path() + "/volume", O_PATH)));
  ContainerSpec by_fd = fixture_->shell("app-0", "cat /data/file");
  oci::Mount mount;
  mount.destination = "/data";
  mount.options = {"rbind", "ro"};
  mount.source_fd = fd;
  by_fd.spec.mounts.push_back(mount);
  EXPECT_EQ(run(by_fd), "content\n");
  EXPECT_EQ(run(by_fd), "content\n");  // a second time, as on a restart
}

TEST_F(ConfinementLive, a_link_in_the_image_cannot_lead_a_mount_out) {
  MUST(sys::make_directories(fixture_->path() + "/outside"));
  ASSERT_EQ(::symlink((fixture_->path() + "/outside").c_str(), (fixture_->rootfs() + "/data").c_str()), 0);
  ContainerSpec spec = fixture_->shell("app-0", "touch /data/x; ls " + fixture_->path() + "/outside");
  oci::Mount mount;
  mount.type = "tmpfs";
  mount.source = "tmpfs";
  mount.destination = "/data";
  spec.spec.mounts.push_back(mount);
  EXPECT_EQ(run(spec), "x\n");  // the link is resolved inside the root
  EXPECT_TRUE(MUST(sys::list(fixture_->path() + "/outside")).empty());
  // For the kernel's file systems, a link as the mount point is refused (CVE-2019-19921, CVE-2026-41579).
  ASSERT_EQ(::rmdir((fixture_->rootfs() + "/dev").c_str()), 0);
  ASSERT_EQ(::symlink("/tmp", (fixture_->rootfs() + "/dev").c_str()), 0);
  std::string refused = sh("true");
  EXPECT_EQ(refused.find("start: start container app-0: mounts: /dev: must be mounted on ordinary directory: "), 0u) << refused;
}

// A distribution's /etc/resolv.conf may be a link to a file that only systemd-resolved creates.
TEST_F(ConfinementLive, a_file_is_mounted_behind_links_to_nothing) {
  MUST(sys::replace_file(fixture_->path() + "/note", "content\n", 0644));
  const std::string outside = "/tmp/coracle-evil";
  struct Row {
    const char* name;
    std::string target, made;  // made: the created file, within the root
  };
  for (const Row& row :
       {Row{"resolv", "../run/systemd/resolve/stub.conf", "/run/systemd/resolve/stub.conf"},
        Row{"absolute", "/run/absolute.conf", "/run/absolute.conf"}, Row{"beside", "other.conf", "/etc/other.conf"},
        Row{"twice", "once", "/etc/end"}, Row{"once", "/etc/end", "/etc/end"}, Row{"out", "../../../../.." + outside, outside}}) {
    std::string place = std::string("/etc/") + row.name;
    (void)::symlink(row.target.c_str(), (fixture_->rootfs() + place).c_str());
    if (row.name == std::string("twice")) (void)::symlink("/etc/end", (fixture_->rootfs() + "/etc/once").c_str());
    ContainerSpec spec = fixture_->shell("app-0", "cat " + place + " " + row.made);
    oci::Mount mount;
    mount.type = "bind";
    mount.source = fixture_->path() + "/note";
    mount.destination = place;
    spec.spec.mounts.push_back(mount);
    EXPECT_EQ(run(spec), "content\ncontent\n") << row.name;
    EXPECT_TRUE(sys::exists(fixture_->rootfs() + row.made)) << row.name;
    (void)::unlink((fixture_->rootfs() + row.made).c_str());
  }
  EXPECT_FALSE(sys::exists(outside));
  for (const char* name : {"around", "round"})
    ASSERT_EQ(::symlink(name[0] == 'a' ? "round" : "around", (fixture_->rootfs() + "/etc/" + name).c_str()), 0);
  ContainerSpec spec = fixture_->shell("app-0", "true");
  oci::Mount mount;
  mount.type = "bind";
  mount.source = fixture_->path() + "/note";
  mount.destination = "/etc/round";
  spec.spec.mounts.push_back(mount);
  EXPECT_NE(run(spec).find("mounts: /etc/round: mount: Too many"), std::string::npos);
}

TEST_F(ConfinementLive, takes_more_mounts_than_one_message_carries) {
  for (size_t count : {240u, 251u, 900u}) {
    ContainerSpec spec = fixture_->shell(
        "app-0", "cat /many/0 /many/" + std::to_string(count / 2) + " /many/" + std::to_string(count - 1) + "; ls /many | wc -l");
    for (size_t i = 0; i < count; ++i) {
      oci::Mount mount;
      mount.type = "bind";
      mount.source = fixture_->path() + "/many-" + std::to_string(i);
      mount.destination = "/many/" + std::to_string(i);
      MUST(sys::replace_file(mount.source, std::to_string(i) + "\n", 0644, sys::Durability::volatile_));
      spec.spec.mounts.push_back(mount);
    }
    std::string want;
    for (size_t i : {size_t(0), count / 2, count - 1, count}) want += std::to_string(i) + "\n";
    EXPECT_EQ(run(spec), want);
  }
}

TEST_F(ConfinementLive, directories_of_a_read_only_root_may_stay_writable) {
  MUST(sys::make_directories(fixture_->rootfs() + "/data"));
  MUST(sys::replace_file(fixture_->rootfs() + "/data/seed", "seed\n", 0644));
  ContainerSpec spec = fixture_->shell(
      "app-0", "cat /data/seed; echo x > /data/x && echo one; echo y > /made/deep/y && echo two; touch /z || true");
  spec.spec.root.readonly = true;
  for (const char* place : {"/data", "/made/deep"}) spec.spec.mounts.push_back({.destination = place, .of_root = true});
  std::string out = run(spec);
  EXPECT_TRUE(out.starts_with("seed\none\ntwo\n")) << out;
  EXPECT_NE(out.find("/z: Read-only"), std::string::npos) << out;
  EXPECT_TRUE(sys::exists(fixture_->rootfs() + "/data/x"));
}

TEST_F(ConfinementLive, can_have_a_root_that_is_read_only) {
  ContainerSpec spec = fixture_->shell("app-0", "touch /x; touch /dev/shm/x && echo shm");
  spec.spec.root.readonly = true;
  std::string out = run(spec);
  EXPECT_NE(out.find("/x: Read-only"), std::string::npos) << out;
  EXPECT_NE(out.find("shm\n"), std::string::npos) << out;
}

TEST_F(ConfinementLive, keeps_resource_limits_and_names_those_it_cannot) {
  ContainerSpec spec = fixture_->shell("app-0", "ulimit -n; ulimit -Hn; ulimit -c");
  spec.spec.process.rlimits = {{"RLIMIT_NOFILE", 100, 200}, {"RLIMIT_CORE", 0, 0}};
  EXPECT_EQ(run(spec), "100\n200\n0\n");
  if (!(MUST(sys::own_capabilities()) >> kCapSysResource & 1)) {
    spec.spec.process.rlimits = {{"RLIMIT_NOFILE", 100, uint64_t(1) << 40}};
    EXPECT_NE(run(spec).find("RLIMIT_NOFILE"), std::string::npos);
  }
  spec.spec.process.rlimits = {{"RLIMIT_NONSENSE", 1, 1}};
  EXPECT_CODE(runtime().start_container("pod", spec), Code::invalid);
}

TEST_F(ConfinementLive, sets_sysctls_of_its_own_namespaces_only) {
  ContainerSpec spec = fixture_->shell("app-0", "cat /proc/sys/net/ipv4/ip_unprivileged_port_start /proc/sys/kernel/msgmax");
  spec.spec.linux_.sysctl = {{"net.ipv4.ip_unprivileged_port_start", "80"}, {"kernel.msgmax", "16384"}};
  EXPECT_EQ(run(spec), "80\n16384\n");
  for (const char* evil : {"kernel.core_pattern", "vm.swappiness", "net/../kernel/core_pattern", "kernel.shm_rmid_forced+x"}) {
    spec.spec.linux_.sysctl = {{evil, "1"}};
    EXPECT_CODE(runtime().start_container("pod", spec), Code::invalid);
  }
  SandboxSpec pod;
  pod.id = "tuned";
  pod.sysctl = {{"net.ipv4.ip_unprivileged_port_start", "0"}};
  ASSERT_OK(runtime().create_sandbox(pod));
  EXPECT_EQ(run(fixture_->shell("app-0", "cat /proc/sys/net/ipv4/ip_unprivileged_port_start"), 0, "tuned"), "0\n");
  pod.id = "host";
  pod.host_network = true;
  EXPECT_CODE(runtime().create_sandbox(pod), Code::invalid);
  EXPECT_CODE(runtime().sandbox("host"), Code::not_found);
}

TEST_F(ConfinementLive, sets_sysctls_where_something_is_mounted_on_theirs) {  // as in systemd-nspawn
  SandboxSpec pod;
  pod.id = "tuned";
  pod.sysctl = {{"net.ipv4.ip_unprivileged_port_start", "7"}};
  start_thread("mounts", [&] {
    ASSERT_EQ(::unshare(CLONE_NEWNS), 0);
    ASSERT_EQ(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
    ASSERT_EQ(::mount("/proc/sys", "/proc/sys", nullptr, MS_BIND, nullptr), 0);
    ASSERT_EQ(::mount(nullptr, "/proc/sys", nullptr, MS_BIND | MS_REMOUNT | MS_RDONLY, nullptr), 0);
    ASSERT_EQ(::mount("/proc/sys/net", "/proc/sys/net", nullptr, MS_BIND, nullptr), 0);
    ASSERT_OK(runtime().create_sandbox(pod));
  }).join();
  EXPECT_EQ(run(fixture_->shell("app-0", "cat /proc/sys/net/ipv4/ip_unprivileged_port_start"), 0, "tuned"), "7\n");
}

TEST_F(ConfinementLive, gives_every_process_its_own_oom_score) {
  ContainerSpec spec = fixture_->shell("app-0", "cat /proc/self/oom_score_adj");
  spec.spec.process.oom_score_adj = 500;
  EXPECT_EQ(run(spec), "500\n");
  spec.spec.process.oom_score_adj = -997;  // the value of a guaranteed pod must not fail where it is not permitted
  auto own = sys::own_oom_score();
  std::string want = MUST(sys::own_capabilities()) >> kCapSysResource & 1 ? "-997\n" : std::to_string(*own) + "\n";
  EXPECT_EQ(run(spec), want);
}

TEST_F(ConfinementLive, shares_a_process_namespace_when_asked) {
  SandboxSpec pod;
  pod.id = "shared";
  pod.share_process_namespace = true;
  ASSERT_OK(runtime().create_sandbox(pod));
  ASSERT_OK(runtime().start_container("shared", fixture_->shell("one-0", "sleep 1000")));
  // A new process has no command line at first: its descriptors are closed earlier.
  const char* count =
      "for i in $(seq 600); do ps | grep -q 'sleep 100[0]' && break; sleep 0.1; done; ps | grep -c 'sleep 100[0]'";
  EXPECT_EQ(run(fixture_->shell("two-0", count), 0, "shared"), "1\n");
  EXPECT_NE(run(fixture_->shell("two-0", "cat /proc/1/comm; grep CapEff /proc/1/status"), 0, "shared")
                .find("pause\nCapEff:\t0000000000000000"),
            std::string::npos);
  // An exec runs in the same namespace.
  ExecSpec look;
  look.args = {"/bin/sh", "-c", "ps | grep -c 'sleep 100[0]'"};
  auto exec = runtime().exec("shared", "one-0", look);
  ASSERT_TRUE(exec.ok()) << exec.error().text();
  EXPECT_EQ((*exec)->wait({}).value_or(-1), 0);
}

TEST_F(ConfinementLive, can_be_part_of_the_host) {
  SandboxSpec pod;
  pod.id = "host";
  pod.hostname = "ignored";
  pod.host_network = pod.host_ipc = pod.host_pid = true;
  ASSERT_OK(runtime().create_sandbox(pod));
  ContainerSpec spec = fixture_->shell("app-0", "for n in net ipc uts pid; do readlink /proc/self/ns/$n; done");
  std::string want;
  for (const char* name : {"net", "ipc", "uts", "pid"}) {
    char link[64];
    ssize_t n = ::readlink((std::string("/proc/self/ns/") + name).c_str(), link, sizeof link);
    want += std::string(link, size_t(n)) + "\n";
  }
  EXPECT_EQ(run(spec, 0, "host"), want);
  ASSERT_OK(runtime().start_container("host", fixture_->shell("app-1", "trap '' TERM; sleep 1000")));
  ASSERT_OK(runtime().remove_sandbox("host"));
}

// Every stage that a specification can make fail: each error names its stage, and nothing is left behind.
TEST_F(ConfinementLive, names_the_step_that_fails_and_leaves_nothing) {
  auto expect_failure = [&](const char* want, const std::function<void(ContainerSpec&)>& spoil) {
    ContainerSpec spec = fixture_->shell("app-0", "true");
    spoil(spec);
    auto started = runtime().start_container("pod", spec);
    ASSERT_FALSE(started.ok()) << want;
    EXPECT_NE(started.error().text().find(want), std::string::npos) << started.error().text();
    auto state = runtime().sandbox("pod");
    ASSERT_TRUE(state.ok());
    EXPECT_TRUE(state->containers.empty()) << want;
  };
  expect_failure("exec: \"nothing\": executable file not found in $PATH", [](auto& s) { s.spec.process.args = {"nothing"}; });
  expect_failure("exec: \"/nothing\": stat /nothing: No such file", [](auto& s) { s.spec.process.args = {"/nothing"}; });
  expect_failure("exec: \"/etc/passwd\": Permission denied", [](auto& s) { s.spec.process.args = {"/etc/passwd"}; });
  expect_failure("process.cwd: /etc/passwd: chdir: Not a directory", [](auto& s) { s.spec.process.cwd = "/etc/passwd"; });
  expect_failure("root: open /no/root", [](auto& s) { s.spec.root.path = "/no/root"; });
  expect_failure("mount /data: open /no/volume", [](auto& s) {
    oci::Mount mount;
    mount.type = "bind";
    mount.source = "/no/volume";
    mount.destination = "/data";
    s.spec.mounts.push_back(mount);
  });
  expect_failure("mounts: /data: mount: No such device", [](auto& s) {
    oci::Mount mount;
    mount.type = "nonsense";
    mount.destination = "/data";
    s.spec.mounts.push_back(mount);
  });
  auto bind = [](auto& s, const char* source, const char* destination) {
    oci::Mount mount;
    mount.type = "bind";
    mount.source = source;
    mount.destination = destination;
    s.spec.mounts.push_back(mount);
  };
  expect_failure("mounts: /etc/passwd: not a directory: a directory is mounted over a file",
                 [&](auto& s) { bind(s, "/etc", "/etc/passwd"); });
  expect_failure("mounts: /etc: is a directory: a file is mounted over a directory",
                 [&](auto& s) { bind(s, "/etc/passwd", "/etc"); });
  expect_failure("mounts: /etc/passwd/in: mount: Not a directory", [&](auto& s) { bind(s, "/etc", "/etc/passwd/in"); });
  expect_failure("linux.devices: /bin/sh: mknod: File exists", [](auto& s) {
    oci::Device device;
    device.path = "/bin/sh";
    device.type = "c";
    device.major = 1, device.minor = 3;
    s.spec.linux_.devices.push_back(device);
  });
  expect_failure("linux.sysctl: net.ipv4.no_such_thing: write: No such file", [](auto& s) {
    s.spec.linux_.sysctl = {{"net.ipv4.no_such_thing", "1"}};
  });
  expect_failure("terminal", [](auto& s) {
    s.spec.process.terminal = true;
    std::erase_if(s.spec.mounts, [](const oci::Mount& mount) { return mount.destination == "/dev/pts"; });
  });
  expect_failure("log directory", [](auto& s) { s.log.path = "/no/such/dir/0.log"; });
  expect_failure("linux.seccomp.defaultAction", [](auto& s) {
    s.spec.linux_.seccomp = json::object{{"defaultAction", "SCMP_ACT_WISH"}};
  });
  expect_failure("unknown capability", [](auto& s) { s.spec.process.capabilities->bounding = {"CAP_FLY"}; });
  expect_failure("process.apparmorProfile: ", [](auto& s) { s.spec.process.apparmor_profile = "no-such-profile"; });
  expect_failure("linux.namespaces: network: open /no/ns", [](auto& s) { s.spec.linux_.namespaces = {{"network", "/no/ns"}}; });
  expect_failure("linux.namespaces: setns: Invalid argument", [](auto& s) {
    s.spec.linux_.namespaces = {{"network", "/proc/self/ns/uts"}};
  });
  auto cgroups = MUST(sys::list(fixture_->config.cgroup_root + "/pod"));
  for (auto& entry : cgroups) EXPECT_FALSE(entry.name.starts_with("c-")) << entry.name;
  EXPECT_EQ(MUST(sys::list(fixture_->config.state_dir + "/sandboxes/pod")).size(), 1u);
}

}  // namespace
}  // namespace coracle::runtime

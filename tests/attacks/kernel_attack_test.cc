// SPDX-License-Identifier: Apache-2.0
// Attacks on resources of the whole machine: sysctls, cgroups, devices, annotations, and programs that a runtime runs on the host
// for a container. advisories.tsv lists the advisories.
#include <elf.h>
#include <sys/syscall.h>

#include "tests/attacks/attack_fixture.h"

namespace coracle::attacks {
namespace {

class KernelAttack : public Attack {
 protected:
  static constexpr const char* kWatched[] = {"/proc/sys/kernel/core_pattern", "/proc/sys/kernel/shm_rmid_forced",
                                             "/proc/sys/kernel/msgmax",       "/proc/sys/net/ipv4/ip_unprivileged_port_start",
                                             "/proc/sys/kernel/hostname",     "/proc/sys/vm/swappiness"};
  static std::string watched() {
    std::string out;
    for (const char* path : kWatched) out += read_text(path);
    return out;
  }
};
INSTANTIATE_TEST_SUITE_P(Of, KernelAttack, testing::Values(Caller::daemon, Caller::command_line, Caller::own_users), name_of);
class PodAttack : public KernelAttack {};  // only possible with pods
INSTANTIATE_TEST_SUITE_P(Of, PodAttack, testing::Values(Caller::daemon), name_of);

// CVE-2022-0811: the value or name of one sysctl contains another one: kernel.core_pattern, and so a program that the host runs.
TEST_P(KernelAttack, one_sysctl_is_one_sysctl) {
  const std::string before = watched();
  const std::pair<const char*, const char*> evil[] = {
      {"kernel.shm_rmid_forced", "1+kernel.core_pattern=|/evil"},
      {"kernel.shm_rmid_forced", "1\nkernel.core_pattern=|/evil"},
      {"kernel.shm_rmid_forced+kernel.core_pattern", "|/evil"},
      {"kernel.shm_rmid_forced=1+kernel.core_pattern", "|/evil"},
      {"net.ipv4/../../kernel/core_pattern", "|/evil"},
      {"net/../kernel/core_pattern", "|/evil"},
      {"kernel.core_pattern", "|/evil"},
      {"kernel/core_pattern", "|/evil"},
      {"net//../kernel.core_pattern", "|/evil"},
      {"vm.swappiness", "1"},
      {"fs.mqueue.../../kernel/core_pattern", "|/evil"},
  };
  for (const auto& [name, value] : evil) {
    ContainerSpec spec = shell("true");
    spec.spec.linux_.sysctl = {{name, value}};
    EXPECT_NE(run(spec).refusal, "") << name << "=" << value;
    if (is_pod()) {
      SandboxSpec pod;
      pod.id = "evil";
      pod.sysctl = {{name, value}};
      EXPECT_FALSE(runtime().create_sandbox(pod).ok()) << name << "=" << value;
    }
    EXPECT_EQ(watched(), before) << name << "=" << value;
  }
  ContainerSpec good = shell("cat /proc/sys/kernel/shm_rmid_forced");  // the sysctl itself is permitted
  good.spec.linux_.sysctl = {{"kernel.shm_rmid_forced", "1"}};
  EXPECT_EQ(run(good).out, "1\n");
  EXPECT_EQ(watched(), before);
}

// CVE-2022-0532, GHSA-w2j5-3rcx-vx7x: a container that shares a namespace with the host changes the host's settings.
TEST_P(PodAttack, a_shared_namespace_keeps_its_settings) {
  const std::string before = watched();
  struct Row {
    const char *name, *value;
    bool network, ipc;
  };
  for (const Row& row : {Row{"net.ipv4.ip_unprivileged_port_start", "0", true, false}, Row{"kernel.msgmax", "1234", false, true},
                         Row{"fs.mqueue.msg_max", "11", false, true}, Row{"kernel.hostname", "evil", true, false},
                         Row{"kernel.shm_rmid_forced", "1", true, true}}) {
    SandboxSpec pod;
    pod.id = "sharing";
    pod.host_network = row.network;
    pod.host_ipc = row.ipc;
    ASSERT_OK(runtime().create_sandbox(pod));
    ContainerSpec spec = shell("true");
    spec.spec.linux_.sysctl = {{row.name, row.value}};
    EXPECT_CODE(runtime().start_container("sharing", spec), Code::invalid);
    ASSERT_OK(runtime().remove_sandbox("sharing"));
    pod.sysctl = {{row.name, row.value}};
    EXPECT_CODE(runtime().create_sandbox(pod), Code::invalid);
    EXPECT_EQ(watched(), before) << row.name;
  }
}

TEST_P(KernelAttack, a_namespace_that_is_not_its_own_keeps_its_settings) {
  struct Row {
    const char *type, *file, *name, *path;
  };
  for (const Row& row :
       {Row{"network", "net", "net.ipv4.ip_unprivileged_port_start", "/proc/sys/net/ipv4/ip_unprivileged_port_start"},
        Row{"ipc", "ipc", "kernel.msgmax", "/proc/sys/kernel/msgmax"},
        Row{"uts", "uts", "kernel.domainname", "/proc/sys/kernel/domainname"}}) {
    ContainerSpec spec = shell(std::string("readlink /proc/self/ns/") + row.file);
    const std::string own = fs::read_symlink(std::string("/proc/self/ns/") + row.file).string() + "\n";
    // The value is set unchanged, so that a successful attack does no harm.
    spec.spec.linux_.sysctl = {{row.name, std::string(trim(read_text(row.path)))}};
    Outcome got = run(spec);
    EXPECT_EQ(got.refusal, "") << row.name << ": its own may be set";
    EXPECT_NE(got.out, own);
    // Joined by path, the host's own namespace.
    spec.spec.linux_.namespaces = {{row.type, "/proc/" + std::to_string(::getpid()) + "/ns/" + row.file}};
    for (const char* type : {"pid", "network", "ipc", "uts", "mount", "cgroup"})
      if (GetParam() == Caller::command_line && std::string(type) != row.type) spec.spec.linux_.namespaces.push_back({type, ""});
    got = run(spec);
    EXPECT_NE(got.refusal.find(row.name), got.refusal.npos)
        << row.name << " of the host, joined by its path: " << got.refusal << got.out;
    if (is_pod()) continue;
    std::erase_if(spec.spec.linux_.namespaces, [&](const oci::Namespace& ns) { return ns.type == row.type; });
    got = run(spec);
    EXPECT_TRUE(!got.refusal.empty() || got.out != own) << row.name << " of the host";
  }
}

// GHSA-g54h-m393-cpwq: a list of allowed devices permits all other devices.
TEST_P(KernelAttack, a_list_of_devices_allows_no_others) {
  ASSERT_EQ(::mknod((rootfs() + "/kmsg").c_str(), S_IFCHR | 0666, makedev(1, 11)), 0);
  ASSERT_EQ(::mknod((rootfs() + "/mem").c_str(), S_IFCHR | 0666, makedev(1, 1)), 0);
  ASSERT_EQ(::mknod((rootfs() + "/zero").c_str(), S_IFCHR | 0666, makedev(1, 5)), 0);
  EXPECT_GE(::open((rootfs() + "/kmsg").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC), 0) << "the control: the host can";
  oci::DeviceRule one;
  one.allow = true;
  one.type = "c";
  one.major = 1, one.minor = 3;
  using Rules = std::vector<oci::DeviceRule>;
  for (const Rules& rules : {Rules{}, Rules{one}}) {
    ContainerSpec spec = shell(
        "head -c 1 /kmsg; head -c 1 /mem; mknod /tmp/disk b 254 0; head -c 1 /tmp/disk; head -c 1 /zero | wc -c; rm -f "
        "/tmp/disk");
    spec.spec.linux_.resources.devices = rules;
    Outcome got = run(spec);
    for (const char* name : {"/kmsg", "/mem"})
      EXPECT_NE(got.out.find(std::string("head: ") + name + ": Operation not permitted"), got.out.npos) << name << "\n"
                                                                                                        << got.out << got.refusal;
    // In a user namespace not even the node exists.
    const char* why = GetParam() == Caller::own_users ? "No such file or directory" : "Operation not permitted";
    for (const char* name : {"/tmp/disk"})
      EXPECT_NE(got.out.find(std::string("head: ") + name + ": " + why), got.out.npos) << name << "\n" << got.out << got.refusal;
    EXPECT_NE(got.out.find("1\n"), got.out.npos) << got.out;
  }
}

// CVE-2023-25809: the host's cgroups are visible and writable in a container without a cgroup namespace of its own.
TEST_P(KernelAttack, cgroups_of_the_host_are_out_of_reach) {
  const std::string look =
      "cat /proc/self/cgroup | grep ^0::; mkdir /sys/fs/cgroup/evil; echo 0 > /sys/fs/cgroup/cgroup.procs; "
      "ls -d /sys/fs/cgroup/*/ 2>/dev/null; echo done";
  auto check = [&](const Outcome& got) {
    EXPECT_EQ(got.out.find("0::/\n"), got.out.find("0::")) << got.out << got.refusal;
    EXPECT_NE(got.out.find("Read-only file system"), got.out.npos) << got.out;
    EXPECT_EQ(got.out.find("coracle"), got.out.npos) << "the host's cgroups: " << got.out;
    EXPECT_NE(got.out.find("done"), got.out.npos) << got.out;
  };
  check(run(shell(look)));
  if (GetParam() == Caller::command_line) {  // a list without the cgroup namespace
    ContainerSpec spec = shell(look);
    for (const char* type : {"pid", "network", "ipc", "uts", "mount"}) spec.spec.linux_.namespaces.push_back({type, ""});
    Outcome got = run(spec);
    EXPECT_NE(got.out.find("Read-only file system"), got.out.npos) << got.out << got.refusal;
    return;
  }
  SandboxSpec pod;
  pod.id = "sharing";
  pod.host_network = pod.host_ipc = pod.host_pid = true;
  ASSERT_OK(runtime().create_sandbox(pod));
  ContainerSpec spec = shell(look);
  ASSERT_OK(runtime().start_container("sharing", spec));
  fixture_->wait_log("app-0", "done");
  check({"", fixture_->output("app-0") + fixture_->output("app-0", "stderr"), 0});
}

// CVE-2024-3154, CVE-2023-6476, CVE-2026-53492: an annotation becomes a systemd property, a writable cgroup, a removed limit, or
// a device.
TEST_P(KernelAttack, annotations_change_nothing) {
  const std::string look =
      "cat /proc/self/limits /proc/self/mounts | grep -v overlay; ls /dev; cat /sys/fs/cgroup/*.max "
      "/sys/fs/cgroup/*.weight 2>/dev/null; "
      "mkdir /sys/fs/cgroup/evil 2>&1; grep -E 'Cap|Seccomp|NoNew' /proc/self/status";
  auto plain = shell(look);
  const std::string want = run(plain).out;
  EXPECT_NE(want.find("Read-only"), want.npos) << want;
  ContainerSpec spec = shell(look);
  const std::string marker = host() + "/made";
  spec.spec.annotations = {
      {"org.systemd.property.ExecStartPre", "[('/bin/touch', ['/bin/touch', '" + marker + "'], false)]"},
      {"org.systemd.property.ExecStopPost", "[('/bin/touch', ['/bin/touch', '" + marker + "'], false)]"},
      {"org.systemd.property.DeviceAllow", "[('block-*', 'rwm')]"},
      {"io.kubernetes.cri-o.cgroup2-mount-hierarchy-rw", "true"},
      {"io.kubernetes.cri-o.cgroup2-mount-hierarchy-rw/app", "true"},
      {"io.kubernetes.cri-o.UnifiedCgroup.app", "pids.max=max;memory.max=max"},
      {"io.kubernetes.cri-o.userns-mode", "auto"},
      {"io.kubernetes.cri-o.Devices", "/dev/vda:/dev/vda:rwm"},
      {"io.kubernetes.cri-o.seccompBPFAction", "unconfined"},
      {"run.oci.seccomp_bpf_data", "AAAA"},
      {"run.oci.systemd.subgroup", "../../evil"},
      {"run.oci.hooks.stdout", host() + "/made"},
      {"run.oci.hooks.stderr", host() + "/made"},
      {"run.oci.delegate-cgroup", "../../evil"},
      {"cdi.k8s.io/evil", "vendor.com/device=all"},
      {"cdi.k8s.io", "vendor.com/device=all"},
      {"devices.nri.io", "[{path: /dev/vda, type: b, major: 254, minor: 0}]"},
  };
  EXPECT_EQ(run(spec).out, want);
}

// CVE-2024-0132, CVE-2025-23266, CVE-2025-23267: the image controls a program that the runtime runs on the host for a container:
// through its environment (LD_PRELOAD), its working directory, its library cache. The only such program is coracle-pause: nothing
// of the container reaches its environment, and it loads no library.
TEST_P(PodAttack, nothing_of_the_image_is_run_on_the_host) {
  write_text(rootfs() + "/evil.so", "no library, but it would be asked for");
  MUST(sys::make_directories(rootfs() + "/etc/ld.so.conf.d"));
  write_text(rootfs() + "/etc/ld.so.preload", "/evil.so\n");
  ASSERT_EQ(::symlink((climb() + "/etc").c_str(), (rootfs() + "/lib").c_str()), 0);
  ContainerSpec spec = shell("sleep 1000");
  for (const char* variable :
       {"LD_PRELOAD=/proc/self/cwd/evil.so", "LD_LIBRARY_PATH=/proc/self/cwd", "NVIDIA_VISIBLE_DEVICES=all",
        "NVIDIA_DRIVER_CAPABILITIES=all", "GCONV_PATH=/", "_LIBCONTAINER_INITPIPE=3", "NOTIFY_SOCKET=/run/x"})
    spec.spec.process.env.push_back(variable);
  ASSERT_EQ(start(spec).refusal, "");
  auto state = runtime().sandbox("pod");
  ASSERT_TRUE(state.ok());
  const std::string pause = "/proc/" + std::to_string(state->pid);
  EXPECT_EQ(read_text(pause + "/environ"), "");
  const std::string maps = read_text(pause + "/maps");
  EXPECT_EQ(maps.find(".so"), maps.npos) << maps;
  const std::string program = read_text(CORACLE_PAUSE);
  Elf64_Ehdr head;
  ASSERT_GT(program.size(), sizeof head);
  std::memcpy(&head, program.data(), sizeof head);
  for (int i = 0; i < head.e_phnum; ++i) {
    Elf64_Phdr part;
    std::memcpy(&part, program.data() + head.e_phoff + size_t(i) * head.e_phentsize, sizeof part);
    EXPECT_NE(part.p_type, unsigned(PT_INTERP)) << "it would ask for a loader";
    EXPECT_NE(part.p_type, unsigned(PT_DYNAMIC));
  }
  // The pod has no other processes than this one and the container's.
  std::vector<std::string> pids;
  for (const auto& entry : fs::recursive_directory_iterator(fixture_->config.cgroup_root + "/pod")) {
    if (entry.path().filename() != "cgroup.procs") continue;
    const std::string text = read_text(entry.path());
    for (std::string_view line : split(text, '\n'))
      if (!line.empty()) pids.emplace_back(line);
  }
  std::sort(pids.begin(), pids.end());
  std::vector<std::string> want = {std::to_string(state->pid), std::to_string(pid())};
  std::sort(want.begin(), want.end());
  EXPECT_EQ(pids, want);
  stop();
}

// CVE-2026-50195, CVE-2026-53489, CVE-2026-53492, CVE-2024-8676, CVE-2025-0426: checkpoints with a container's whole description.
// This runtime has no checkpoints. CVE-2024-1753 and related ones: building images. It does not build images either.
TEST_P(KernelAttack, there_are_no_checkpoints_and_no_builds) {
  if (is_pod()) GTEST_SKIP() << "the runtime's interface has no such call";
  ASSERT_EQ(start(shell("sleep 1000")).refusal, "");
  fs::create_directory(fixture_->path() + "/checkpoint");
  fs::create_symlink(host() + "/secret", fixture_->path() + "/checkpoint/container.log");
  for (const char* command : {"checkpoint", "restore", "build", "commit", "unpack"}) {
    Outcome got = oci({command, "--image-path", fixture_->path() + "/checkpoint", "--work-path", host(), "app-0"});
    EXPECT_NE(got.code, 0) << command;
    EXPECT_EQ(got.out.find("the host's secret"), got.out.npos) << got.out;
    EXPECT_EQ(fs::exists(fixture_->path() + "/checkpoint/descriptors.json"), false);
  }
  EXPECT_GT(pid(), 0) << "and it still runs";
  EXPECT_EQ(std::distance(fs::directory_iterator(fixture_->path() + "/checkpoint"), {}), 1);
  stop();
}

}  // namespace
}  // namespace coracle::attacks

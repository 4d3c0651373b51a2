// SPDX-License-Identifier: Apache-2.0
// Pods with a user namespace of their own (Kubernetes' hostUsers: false), seen from inside and from the host: the owners of
// processes and files on both sides, the limits of the pod's root, and that a later daemon finds everything again. Source:
// user_namespaces(7), mount_setattr(2) "ID-mapped mounts", KEP-127.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <filesystem>

#include "runtime/base/json.h"
#include "runtime/base/scope.h"
#include "runtime/image/store.h"
#include "runtime/oci/capabilities.h"
#include "runtime/sys/namespaces.h"
#include "runtime/sys/netns.h"
#include "runtime/sys/overlay.h"
#include "runtime/sys/process.h"
#include "tests/runtime/container/live_pod.h"
#include "tests/runtime/expect.h"

namespace coracle::runtime {
namespace {

constexpr uint32_t kBase = 1 << 20, kSize = 1 << 16;

SandboxSpec mapped_pod(const std::string& id, uint32_t base = kBase) {
  SandboxSpec out;
  out.id = id;
  out.hostname = "mapped-0";
  out.uid_mappings = out.gid_mappings = {{0, base, kSize}};
  out.sysctl = {{"net.ipv4.ip_unprivileged_port_start", "0"}, {"kernel.shm_rmid_forced", "1"}};
  return out;
}

class UserNamespaceLive : public LivePod {
 protected:
  void SetUp() override {
    if (std::string why = LiveRuntime::missing(); !why.empty()) GTEST_SKIP() << why;
    fixture_ = std::make_unique<LiveRuntime>();
    ASSERT_OK(fixture_->open());
    auto made = runtime().create_sandbox(mapped_pod("pod"));
    if (!made && made.error().err() == ENOSPC) GTEST_SKIP() << made.error().text();
    ASSERT_TRUE(made.ok()) << made.error().text();
  }
  int pid_of(const std::string& id, const std::string& sandbox = "pod") {
    auto state = runtime().sandbox(sandbox);
    for (auto& container : state->containers)
      if (container.id == id) return container.pid;
    return 0;
  }
  std::string exec(const std::string& id, const std::string& command, int want = 0) {
    ExecSpec spec;
    spec.args = {"/bin/sh", "-c", command};
    auto exec = runtime().exec("pod", id, spec);
    if (!exec) return "exec: " + exec.error().text();
    Fd out = (*exec)->take_stdout(), err = (*exec)->take_stderr();
    std::string text = MUST(sys::read_all(out)) + MUST(sys::read_all(err));
    EXPECT_EQ((*exec)->wait({}).value_or(-1), want) << text;
    return text;
  }
  static ContainerSpec with_all_capabilities(ContainerSpec spec) {
    oci::Capabilities sets;
    sets.bounding = sets.effective = sets.permitted = oci::all_capabilities();
    spec.spec.process.capabilities = sets;
    spec.spec.linux_.seccomp.reset();
    return spec;
  }
  oci::Mount bind(const std::string& source, const std::string& destination, bool is_mapped = true) {
    oci::Mount mount;
    mount.type = "bind";
    mount.source = source;
    mount.destination = destination;
    mount.options = {"rbind", "rprivate"};
    if (is_mapped) mount.options.push_back("idmap");
    return mount;
  }
};

struct stat look_at(const std::string& path) {
  struct stat info {};
  EXPECT_EQ(::lstat(path.c_str(), &info), 0) << path;
  return info;
}
std::string host_link(const std::string& path) {
  char text[128];
  ssize_t n = ::readlink(path.c_str(), text, sizeof text);
  return n < 0 ? "" : std::string(text, size_t(n));
}

TEST_F(UserNamespaceLive, root_inside_is_somebody_else_outside) {
  EXPECT_EQ(sh("cat /proc/self/uid_map /proc/self/gid_map | tr -s ' '"), " 0 1048576 65536\n 0 1048576 65536\n");
  EXPECT_EQ(sh("id -u; id -g"), "0\n0\n");
  ASSERT_OK(runtime().start_container("pod", fixture_->shell("long-0", "sleep 1000")));
  struct stat process = look_at("/proc/" + std::to_string(pid_of("long-0")));
  EXPECT_EQ(process.st_uid, kBase);
  EXPECT_EQ(process.st_gid, kBase);
  // The pod's user namespace owns every namespace that the pod has of its own; pause runs outside.
  auto state = runtime().sandbox("pod");
  EXPECT_EQ(host_link("/proc/" + std::to_string(state->pid) + "/ns/user"), host_link("/proc/self/ns/user"));
  std::string theirs = host_link("/proc/" + std::to_string(pid_of("long-0")) + "/ns/user");
  EXPECT_NE(theirs, host_link("/proc/self/ns/user"));
  for (const char* name : {"net", "ipc", "uts", "mnt"}) {
    Fd ns = MUST(sys::open("/proc/" + std::to_string(pid_of("long-0")) + "/ns/" + name, O_RDONLY));
    Fd owner = MUST(sys::owner_of_namespace(ns));
    EXPECT_EQ("user:[" + std::to_string(MUST(sys::stat(owner)).st_ino) + "]", theirs) << name;
  }
}

TEST_F(UserNamespaceLive, containers_share_what_the_pod_shares) {
  std::string look = "for n in net ipc uts user; do readlink /proc/self/ns/$n; done; hostname";
  EXPECT_EQ(run(fixture_->shell("one-0", look)), run(fixture_->shell("two-0", look)));
  EXPECT_EQ(sh("hostname"), "mapped-0\n");
  EXPECT_NE(sh("ip addr show lo").find("UP"), std::string::npos);
  EXPECT_EQ(sh("cat /proc/sys/net/ipv4/ip_unprivileged_port_start /proc/sys/kernel/shm_rmid_forced"), "0\n1\n");
  EXPECT_EQ(run(fixture_->shell("one-0", "stat -c %u:%a /dev/shm; echo shared > /dev/shm/note")), "0:1777\n");
  EXPECT_EQ(run(fixture_->shell("two-0", "cat /dev/shm/note; stat -c %u /dev/shm/note")), "shared\n0\n");
  // The host can still configure the pod's network, as the pod network does.
  Fd network = MUST(runtime().network_namespace("pod"));
  ASSERT_OK(sys::in_netns(network, []() -> Result<void> {
    Fd file = TRY(sys::open("/proc/sys/net/ipv4/ip_default_ttl", O_WRONLY));
    return sys::write_all(file, "63");
  }));
}

TEST_F(UserNamespaceLive, two_pods_are_strangers_to_each_other) {
  ASSERT_OK(runtime().create_sandbox(mapped_pod("other", kBase + kSize)));
  EXPECT_EQ(run(fixture_->shell("app-0", "tr -s ' ' < /proc/self/uid_map"), 0, "other"), " 0 1114112 65536\n");
  EXPECT_NE(run(fixture_->shell("app-0", "readlink /proc/self/ns/user"), 0, "other"), sh("readlink /proc/self/ns/user"));
}

TEST_F(UserNamespaceLive, files_of_volumes_are_owned_as_the_container_sees_them) {
  std::string volume = fixture_->path() + "/volume";
  MUST(sys::make_directories(volume));
  MUST(sys::replace_file(volume + "/given", "x", 0600));
  ASSERT_EQ(::chown((volume + "/given").c_str(), 33, 44), 0);
  MUST(sys::replace_file(volume + "/beyond", "x", 0600));
  ASSERT_EQ(::chown((volume + "/beyond").c_str(), 1 << 16, 0), 0);
  ContainerSpec spec = fixture_->shell("app-0",
                                       "stat -c '%u:%g' /data /data/given /data/beyond; echo hi > /data/made; "
                                       "touch /data/users; chown 1000:2000 /data/users");
  spec.spec.mounts.push_back(bind(volume, "/data"));
  EXPECT_EQ(run(spec), "0:0\n33:44\n65534:0\n");
  EXPECT_EQ(look_at(volume + "/made").st_uid, 0u);
  EXPECT_EQ(look_at(volume + "/users").st_uid, 1000u);
  EXPECT_EQ(look_at(volume + "/users").st_gid, 2000u);
  EXPECT_EQ(look_at(volume + "/given").st_uid, 33u) << "nothing is given away";
  // Without an id map, the host's files belong to nobody inside.
  spec.spec.mounts.back() = bind(volume, "/data", false);
  spec.spec.process.args.back() = "stat -c '%u:%g' /data; cat /data/given; touch /data/more";
  std::string said = run(spec, 1);
  EXPECT_TRUE(said.starts_with("65534:65534\n")) << said;
  EXPECT_NE(said.find("Permission denied"), std::string::npos) << said;
}

TEST_F(UserNamespaceLive, a_file_system_without_id_maps_is_named) {
  ContainerSpec spec = fixture_->shell("app-0", "true");
  oci::Mount mount = bind("volume \"data\"", "/data");
  mount.source_fd = std::make_shared<const Fd>(MUST(sys::open("/proc", O_PATH | O_DIRECTORY)));
  spec.spec.mounts.push_back(mount);
  EXPECT_EQ(run(spec),
            "start: start container app-0: mount /data (volume \"data\"): idmap: its file system cannot be id-mapped: "
            "change mount attributes: Invalid argument");
  EXPECT_EQ(runtime().sandbox("pod")->containers.size(), 0u);
}

TEST_F(UserNamespaceLive, power_ends_at_its_own_things) {
  // All capabilities and no seccomp filter: only the user namespace confines the process.
  auto all = [&](const std::string& command, int want) {
    return run(with_all_capabilities(fixture_->shell("app-0", command)), want);
  };
  EXPECT_EQ(all("grep CapEff /proc/self/status", 0), "CapEff:\t000001ffffffffff\n");
  EXPECT_NE(all("echo x > /proc/sys/kernel/core_pattern", 1).find("Read-only"), std::string::npos);
  EXPECT_NE(all("mount -o remount,rw /proc/sys && echo 1 > /proc/sys/kernel/panic", 1).find("denied"), std::string::npos);
  EXPECT_NE(all("mknod /tmp/disk b 254 0", 1).find("not permitted"), std::string::npos);
  EXPECT_NE(all("date -s 2001-01-01", 0).find("not permitted"), std::string::npos);
  EXPECT_NE(all("mkdir /sys/fs/cgroup/x", 1).find("Read-only"), std::string::npos);
  EXPECT_NE(all("mount -o remount,rw /sys/fs/cgroup", 1).find("denied"), std::string::npos);
  EXPECT_NE(all("mount -t cgroup2 none /tmp && mkdir /tmp/x && echo made", 1).find("denied"), std::string::npos);
  // Inside it has privileges: it can mount a file system and set the host name.
  EXPECT_EQ(all("mount -t tmpfs none /tmp && hostname mine && hostname", 0), "mine\n");
}

TEST_F(UserNamespaceLive, masks_cannot_be_taken_off) {
  ContainerSpec spec = with_all_capabilities(fixture_->shell("app-0", ""));
  for (const char* name : {"umount"})
    if (!sys::exists(fixture_->rootfs() + "/bin/" + name))
      MUST(sys::symlink_at("busybox", MUST(sys::open_directory(fixture_->rootfs() + "/bin")), name));
  spec.spec.process.args.back() =
      "for p in /proc/keys /proc/timer_list /proc/sys /proc/sysrq-trigger /sys/firmware /sys; do umount $p && echo off $p; "
      "umount -l $p && echo off $p; mount -o remount,bind,rw $p && echo writable $p; done; mount --move /proc/sys /tmp && echo "
      "moved; "
      "unshare -m umount /proc/sys && echo off; unshare -Um umount /proc/sys && echo off; "
      "mount -t proc proc /tmp && echo fresh; unshare -pf mount -t proc proc /tmp && echo fresh; true";
  std::string said = run(spec);
  for (const char* bad : {"off", "writable", "moved", "fresh"})
    EXPECT_EQ(said.find(std::string("\n") + bad), std::string::npos) << said;
  EXPECT_FALSE(said.starts_with("off")) << said;
}

// A privileged container gets the host's disks as devices; its root does not own them.
TEST_F(UserNamespaceLive, devices_of_the_host_keep_their_owner) {
  ContainerSpec spec = with_all_capabilities(
      fixture_->shell("app-0",
                      "stat -c '%u %a' /dev/memory /dev/null; head -c 1 /dev/memory; chmod 666 /dev/memory; chown 0 /dev/memory; "
                      "setfattr -n user.x /dev/memory; echo fine > /dev/null"));
  oci::Device device;
  device.path = "/dev/memory";
  device.type = "c";
  device.major = 1;
  device.minor = 1;
  device.file_mode = 0660;
  device.uid = device.gid = 0;
  spec.spec.linux_.devices = {device};
  oci::DeviceRule everything;
  everything.allow = true;
  spec.spec.linux_.resources.devices = {everything};
  std::string said = run(spec);
  EXPECT_TRUE(said.starts_with("65534 660\n0 666\n")) << said;
  size_t refusals = 0;
  for (size_t at = said.find("/dev/memory"); at != said.npos; at = said.find("/dev/memory", at + 1)) ++refusals;
  EXPECT_GE(refusals, 3u) << said;
}

TEST_F(UserNamespaceLive, execs_live_in_it_too) {
  ASSERT_OK(runtime().start_container("pod", fixture_->shell("long-0", "sleep 1000")));
  EXPECT_EQ(exec("long-0", "tr -s ' ' < /proc/self/uid_map; id -u; readlink /proc/self/ns/user"),
            " 0 1048576 65536\n0\n" + host_link("/proc/" + std::to_string(pid_of("long-0")) + "/ns/user") + "\n");
  EXPECT_EQ(exec("long-0", "echo out > /dev/stdout; echo err > /dev/stderr"), "out\nerr\n");
  EXPECT_NE(exec("long-0", "echo 1 > /proc/sys/kernel/panic", 1).find("Read-only"), std::string::npos);
  // A new process has no command line at first: its descriptors are closed earlier.
  const char* kill_first =
      "while [ -z \"$(tr '\\0' ' ' < /proc/1/cmdline)\" ]; do sleep 0.1; done; kill -9 1; cat /proc/1/cmdline | tr '\\0' ' '";
  EXPECT_NE(exec("long-0", kill_first).find("sleep 1000"), std::string::npos);
}

TEST_F(UserNamespaceLive, its_streams_and_terminals_are_its_own) {
  EXPECT_EQ(sh("echo out > /dev/stdout; echo err > /dev/stderr"), "out\nerr\n");
  ContainerSpec user = fixture_->shell("app-0", "echo out > /dev/stdout; id -u; touch /tmp/x || echo no");
  user.spec.process.user.uid = user.spec.process.user.gid = 1000;
  EXPECT_TRUE(run(user).starts_with("out\n1000\n"));
  ContainerSpec terminal = fixture_->shell("app-0", "tty; stat -c '%u %a' $(tty); echo deep > $(tty)");
  terminal.spec.process.terminal = true;
  std::string said = run(terminal);
  EXPECT_NE(said.find("0 620"), std::string::npos) << said;
  EXPECT_NE(said.find("deep"), std::string::npos) << said;
}

TEST_F(UserNamespaceLive, a_user_outside_its_range_is_refused) {
  ContainerSpec spec = fixture_->shell("app-0", "id");
  spec.spec.process.user.uid = kSize;
  EXPECT_NE(run(spec).find("process.user: 65536:0: setresuid, setresgid: Invalid argument"), std::string::npos);
}

TEST_F(UserNamespaceLive, a_shared_process_namespace_s_first_process_is_out_of_reach) {
  SandboxSpec pod = mapped_pod("shared", kBase + kSize);
  pod.share_process_namespace = true;
  ASSERT_OK(runtime().create_sandbox(pod));
  ASSERT_OK(runtime().start_container("shared", fixture_->shell("long-0", "sleep 1000")));
  std::string said = run(with_all_capabilities(fixture_->shell(
                             "app-0",
                             "for i in $(seq 600); do ps | grep -q 'sleep 100[0]' && break; sleep 0.1; done; "
                             "kill -9 1; kill -STOP 1; cat /proc/1/environ; readlink /proc/1/root /proc/1/exe; ls /proc/1/fd; "
                             "cat /proc/1/comm; ps | grep -c 'sleep 100[0]'")),
                         0, "shared");
  EXPECT_NE(said.find("pause\n1\n"), std::string::npos) << said;
  EXPECT_EQ(said.find("memfd"), std::string::npos) << said;
  EXPECT_NE(said.find("ermission denied"), std::string::npos) << said;
}

TEST_F(UserNamespaceLive, is_found_again_by_another_daemon) {
  ASSERT_OK(runtime().start_container("pod", fixture_->shell("long-0", "sleep 1000")));
  std::string before = sh("readlink /proc/self/ns/user");
  fixture_->runtime.reset();
  ASSERT_OK(fixture_->open());
  EXPECT_TRUE(runtime().sandbox("pod")->alive);
  EXPECT_EQ(exec("long-0", "readlink /proc/self/ns/user"), before);
  EXPECT_EQ(sh("readlink /proc/self/ns/user; tr -s ' ' < /proc/self/uid_map"), before + " 0 1048576 65536\n");
  Fd network = MUST(runtime().network_namespace("pod"));
  Fd owner = MUST(sys::owner_of_namespace(network));
  EXPECT_EQ("user:[" + std::to_string(MUST(sys::stat(owner)).st_ino) + "]\n", before);
  ASSERT_OK(runtime().remove_sandbox("pod"));
  ASSERT_OK(runtime().create_sandbox(mapped_pod("pod")));
  EXPECT_NE(sh("readlink /proc/self/ns/user"), before);
}

// A damaged record of the pod's user namespace must not lead to an exec as the host's root.
TEST_F(UserNamespaceLive, a_damaged_record_is_no_way_out) {
  ASSERT_OK(runtime().start_container("pod", fixture_->shell("long-0", "sleep 1000")));
  fixture_->runtime.reset();
  const std::string path = fixture_->config.state_dir + "/sandboxes/pod/sandbox.json";
  const std::string good = MUST(sys::read_file(path));
  for (const char* spoilt : {"[]", "7", "[{}]", "[{\"containerID\":0,\"hostID\":-1,\"size\":65536}]", "null"}) {
    json::value record = MUST(parse_json(good));
    record.as_object()["uidMappings"] = MUST(parse_json(spoilt));
    MUST(sys::replace_file(path, to_text(record), 0600));
    ASSERT_OK(fixture_->open());
    EXPECT_FALSE(runtime().sandbox("pod")->alive) << spoilt;
    EXPECT_TRUE(exec("long-0", "id", -1).starts_with("exec: ")) << spoilt;
    fixture_->runtime.reset();
  }
  MUST(sys::replace_file(path, good, 0600));
  ASSERT_OK(fixture_->open());
}

TEST_F(UserNamespaceLive, refuses_pods_that_cannot_be) {
  auto refused = [&](const char* want, const std::function<void(SandboxSpec&)>& spoil) {
    SandboxSpec pod = mapped_pod("bad");
    spoil(pod);
    auto made = runtime().create_sandbox(pod);
    ASSERT_FALSE(made.ok()) << want;
    EXPECT_NE(made.error().text().find(want), std::string::npos) << made.error().text();
    EXPECT_CODE(runtime().sandbox("bad"), Code::not_found);
  };
  refused("cannot have the host's network", [](SandboxSpec& pod) { pod.host_network = true, pod.sysctl.clear(); });
  refused("cannot have the host's network", [](SandboxSpec& pod) { pod.host_ipc = true, pod.sysctl.clear(); });
  refused("cannot have the host's network", [](SandboxSpec& pod) { pod.host_pid = true; });
  refused("needs uidMappings and gidMappings", [](SandboxSpec& pod) { pod.gid_mappings.clear(); });
  refused("not the host's root", [](SandboxSpec& pod) { pod.uid_mappings = {{0, 0, kSize}}; });
  refused("has to be somebody", [](SandboxSpec& pod) { pod.gid_mappings = {{1, kBase, 10}}; });
  refused("two entries map", [](SandboxSpec& pod) { pod.uid_mappings.push_back({5, kBase + kSize, 1}); });
}

// ---- images ----

TEST(IdMappedOverlay, shows_layers_as_the_pod_s_and_writes_nothing_to_them) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  char name[] = "/var/tmp/coracle-live-XXXXXX";
  const std::string path = ::mkdtemp(name);
  Scope clean([&] { (void)sys::remove_tree(path); });
  for (const char* dir : {"/a", "/b", "/staging"}) MUST(sys::make_directories(path + dir));
  MUST(sys::replace_file(path + "/a/root-s", "one", 0644));
  MUST(sys::replace_file(path + "/b/user-s", "two", 0600));
  ASSERT_EQ(::chown((path + "/b/user-s").c_str(), 1000, 1000), 0);
  auto maps = sys::make_user_namespace({{0, kBase, kSize}}, {{0, kBase, kSize}}, 0);
  if (!maps) GTEST_SKIP() << maps.error().text();
  for (auto way : {sys::OverlayWay::automatic, sys::OverlayWay::by_descriptor, sys::OverlayWay::classic}) {
    for (const char* dir : {"/upper", "/work"}) {
      MUST(sys::remove_tree(path + dir));
      MUST(sys::make_directories(path + dir));
      ASSERT_EQ(::chown((path + dir).c_str(), kBase, kBase), 0);
    }
    sys::Overlay overlay{{path + "/a", path + "/b"}, path + "/upper", path + "/work", path + "/staging", &maps->user};
    auto mounted = sys::mount_overlay(overlay, way);
    ASSERT_TRUE(mounted.ok()) << mounted.error().text();
    EXPECT_EQ(MUST(sys::stat_at(*mounted, "root-s")).st_uid, kBase);
    EXPECT_EQ(MUST(sys::stat_at(*mounted, "user-s")).st_uid, kBase + 1000);
    Fd copied = MUST(sys::open_at(*mounted, "user-s", O_WRONLY | O_APPEND));
    MUST(sys::write_all(copied, "!"));
    EXPECT_EQ(look_at(path + "/upper/user-s").st_uid, kBase + 1000) << "what is written is the pod's on the disk";
    EXPECT_EQ(look_at(path + "/b/user-s").st_uid, 1000u);
    EXPECT_EQ(MUST(sys::read_file(path + "/b/user-s")), "two");
  }
  std::string mounts = MUST(sys::read_file("/proc/self/mountinfo"));
  EXPECT_EQ(mounts.find(path), mounts.npos) << "nothing of it was ever in our tree";
  EXPECT_TRUE(std::filesystem::is_empty(path + "/staging"));
  // The error names a file system without support for id maps.
  sys::Overlay bad{{"/proc/self", path + "/b"}, path + "/upper", path + "/work", path + "/staging", &maps->user};
  auto refused = sys::mount_overlay(bad);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::unsupported);
  EXPECT_NE(refused.error().text().find("the file system of /proc/self cannot be id-mapped"), std::string::npos)
      << refused.error().text();
}

}  // namespace
}  // namespace coracle::runtime

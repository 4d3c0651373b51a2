// SPDX-License-Identifier: Apache-2.0
// Attacks on the setup of a container's file system: links in the image, links that change during the lookup, file systems that
// imitate the kernel's. advisories.tsv lists the advisories.
#include "tests/attacks/attack_fixture.h"

namespace coracle::attacks {
namespace {

// Controls prove that a race is real. They run for a number of exchanges instead of a time, since the exchanger may get little
// processor time.
template <typename Try>
bool comes_true_during(const Exchanger& race, const Try& attempt) {
  constexpr size_t kExchanges = 20'000;
  constexpr int kTriesMax = 10'000'000;
  size_t end = race.count() + kExchanges;
  for (int i = 0; i < kTriesMax && race.count() < end; ++i)
    if (attempt()) return true;
  return false;
}

class MountAttack : public Attack {
 protected:
  // Replaces a directory of the root file system with a link.
  void link(const std::string& target, const std::string& name) {
    fs::remove_all(rootfs() + name);
    ASSERT_EQ(::symlink(target.c_str(), (rootfs() + name).c_str()), 0);
  }
  std::string volume() {
    std::string out = fixture_->path() + "/volume";
    MUST(sys::make_directories(out));
    return out;
  }
};
INSTANTIATE_TEST_SUITE_P(Of, MountAttack, testing::Values(Caller::daemon, Caller::command_line, Caller::own_users), name_of);

// CVE-2019-16884: a volume in the place of /proc receives data that is meant for the kernel.
TEST_P(MountAttack, a_volume_cannot_stand_for_proc) {
  for (const char* name : {"/self/attr/apparmor", "/self/task", "/sys/kernel"}) MUST(sys::make_directories(volume() + name));
  write_text(volume() + "/self/oom_score_adj", "");
  for (const char* place : {"/proc", "/proc/", "//proc", "/./proc", "/proc/.", "/proc/self", "/proc//self/attr", "/proc/sys"}) {
    ContainerSpec spec = shell("true");
    bind(spec, volume(), place);
    Outcome got = run(spec);
    EXPECT_NE(got.refusal.find("mount"), got.refusal.npos) << place << ": " << got.refusal << got.out;
  }
  // With a link in the image the volume can hide /proc; but the runtime writes nothing there.
  link("/proc", "/data");
  ContainerSpec spec = shell("sleep 1000");
  spec.spec.process.oom_score_adj = 700;
  bind(spec, volume(), "/data");
  Outcome got = start(spec);
  if (got.refusal.empty()) {
    EXPECT_EQ(read_text("/proc/" + std::to_string(pid()) + "/oom_score_adj"), "700\n");
    stop();
  }
  EXPECT_EQ(read_text(volume() + "/self/oom_score_adj"), "");
}

// … and data for the kernel reaches it, or the container does not start.
TEST_P(MountAttack, a_label_reaches_the_kernel) {
  const bool has_apparmor = read_text("/sys/module/apparmor/parameters/enabled") == "Y\n";
  ContainerSpec spec = shell("cat /proc/self/attr/apparmor/current || cat /proc/self/attr/current");
  spec.spec.process.apparmor_profile = "unconfined";
  Outcome got = run(spec);
  EXPECT_EQ(got.refusal.empty(), has_apparmor) << got.refusal;
  EXPECT_TRUE(!has_apparmor || got.out == "unconfined\n") << got.out;
  for (const char* profile : {"no-such-profile", "unconfined x", "permprofile unconfined"}) {
    spec.spec.process.apparmor_profile = profile;
    EXPECT_NE(run(spec).refusal.find("apparmorProfile"), std::string::npos) << profile;
  }
}

// CVE-2019-19921, CVE-2023-27561, CVE-2023-28642: /proc or /sys in the image is a link to a chosen place.
TEST_P(MountAttack, proc_and_sys_are_no_links) {
  for (const char* place : {"/proc", "/sys"}) {
    for (const std::string& target : {std::string("/tmp"), std::string("tmp"), host(), climb(), std::string("/proc/self/fd")}) {
      link(target, place);
      Outcome got = run(shell("true"));
      EXPECT_NE(got.refusal.find(std::string("mounts: ") + place), got.refusal.npos)
          << place << " -> " << target << ": " << got.refusal;
    }
    fs::remove(rootfs() + place);
    fs::create_directory(rootfs() + place);
  }
}

TEST_P(MountAttack, proc_that_changes_into_a_link_is_genuine_or_refused) {
  fs::create_directory(rootfs() + "/fake");
  write_text(rootfs() + "/fake/keys", "FAKE\n");
  ASSERT_EQ(::symlink("/fake", (rootfs() + "/evil").c_str()), 0);
  ContainerSpec spec = shell("[ -e /proc/self/stat ] || echo FAKE; cat /proc/keys; [ -e /fake/self ] && echo FAKE; true");
  int refused = 0, run_ok = 0;
  Exchanger race(rootfs() + "/proc", rootfs() + "/evil");
  for (int i = 0; i < tries(60); ++i) {
    Outcome got = run(spec);
    if (!got.refusal.empty()) {
      ++refused;
      continue;
    }
    // Without the masks, the process would see the kernel's list of keys; without procfs: FAKE.
    ++run_ok;
    EXPECT_EQ(got.out.find(": "), got.out.npos) << got.out;  // no line of /proc/keys
  }
  EXPECT_GT(refused + run_ok, 0);
  std::printf("measured: %d refused, %d ran, %zu exchanges\n", refused, run_ok, race.count());
}

// CVE-2021-30465: a mount point becomes a link between the check and the mount.
TEST_P(MountAttack, a_place_that_changes_leads_nowhere) {
  fs::create_directory(rootfs() + "/data");
  ASSERT_EQ(::symlink(climb().c_str(), (rootfs() + "/evil").c_str()), 0);
  {  // joined paths do lead outside: the race is real
    Exchanger race(rootfs() + "/data", rootfs() + "/evil");
    bool is_led_out = comes_true_during(race, [&] {
      struct stat info {};
      return ::stat((rootfs() + "/data/secret").c_str(), &info) == 0;
    });
    EXPECT_TRUE(is_led_out) << "the control: a path that is looked up as it stands";
  }
  ContainerSpec spec = shell("cat /data/secret; cat /data/deep/er/secret; true");
  tmpfs(spec, "/data");
  tmpfs(spec, "/data/deep/er");
  Exchanger race(rootfs() + "/data", rootfs() + "/evil");
  for (int i = 0; i < tries(80); ++i) {
    Outcome got = run(spec);
    EXPECT_EQ(got.out.find("the host's secret"), got.out.npos) << got.out;
  }
}

// CVE-2024-45310: directories and files for a mount are created on the host.
TEST_P(MountAttack, directories_are_made_inside_however_the_way_changes) {
  MUST(sys::make_directories(rootfs() + "/a/b"));
  ASSERT_EQ(::symlink(climb().c_str(), (rootfs() + "/a/evil").c_str()), 0);
  write_text(volume() + "/file", "x");
  ContainerSpec spec = shell("true");
  tmpfs(spec, "/a/b/etc/made/deep");
  bind(spec, volume() + "/file", "/a/b/etc/file");
  Exchanger race(rootfs() + "/a/b", rootfs() + "/a/evil");
  for (int i = 0; i < tries(80); ++i) (void)run(spec);  // TearDown checks that nothing was created
  // The control: mkdir with the joined path does reach the host.
  bool is_made = comes_true_during(race, [&] {
    return ::mkdir((rootfs() + "/a/b/etc/control").c_str(), 0755) == 0 && ::rmdir((host() + "/etc/control").c_str()) == 0;
  });
  EXPECT_TRUE(is_made);
}

// CVE-2025-31133: a masked path is covered by a /dev/null from the image.
TEST_P(MountAttack, a_mask_is_the_host_s_null_device) {
  std::string dev = volume();
  write_text(dev + "/target", "TARGET\n", 0666);
  ASSERT_EQ(::symlink(climb().c_str(), (dev + "/out").c_str()), 0);
  ASSERT_EQ(::symlink("/dev/target", (dev + "/null").c_str()), 0);
  ASSERT_EQ(::mknod((dev + "/evil").c_str(), S_IFCHR | 0666, makedev(1, 3)), 0);
  ContainerSpec spec = shell("cat /proc/keys /proc/timer_list; stat -c %t:%T /proc/keys; echo x > /proc/keys; cat /dev/target");
  for (const char* place : {"/dev", "/dev/pts", "/dev/shm", "/dev/mqueue"}) drop_mount(spec, place);
  bind(spec, dev, "/dev");  // from the image, or shared by two containers
  Exchanger race(dev + "/null", dev + "/evil");
  for (int i = 0; i < tries(60); ++i) {
    Outcome got = run(spec);
    EXPECT_TRUE(!got.refusal.empty() || got.out == "1:3\nTARGET\n") << got.out;
  }
}

// CVE-2025-52565: the terminal is bound to a /dev/console that leads elsewhere, or from another /dev/pts/N.
TEST_P(MountAttack, the_console_leads_nowhere) {
  if (GetParam() == Caller::command_line) GTEST_SKIP() << "a terminal of the command line needs somebody who reads it";
  std::string dev = volume();
  fs::create_directory(dev + "/pts");
  write_text(dev + "/real", "");
  ASSERT_EQ(::symlink(climb().c_str(), (dev + "/evil").c_str()), 0);
  ASSERT_EQ(::symlink((climb() + "/secret").c_str(), (dev + "/console").c_str()), 0);
  fs::copy(rootfs() + "/dev", dev, fs::copy_options::recursive);
  ContainerSpec spec =
      shell("[ -c /dev/console ] && [ ! -L /dev/console ] && echo is a device; cat /dev/console < /dev/null; true");
  spec.spec.process.terminal = true;
  for (const char* place : {"/dev", "/dev/shm", "/dev/mqueue"}) drop_mount(spec, place);
  oci::Mount shared;
  shared.type = "bind", shared.source = dev, shared.destination = "/dev", shared.options = {"rbind"};
  spec.spec.mounts.insert(spec.spec.mounts.begin(), shared);
  {
    Exchanger race(dev + "/pts", dev + "/evil");
    for (int i = 0; i < tries(40); ++i) {
      Outcome got = run(spec);
      EXPECT_EQ(got.out.find("the host's secret"), got.out.npos) << got.out;
    }
  }
  {
    Exchanger race(dev + "/real", dev + "/console");
    for (int i = 0; i < tries(40); ++i) {
      Outcome got = run(spec);
      EXPECT_EQ(got.out.find("the host's secret"), got.out.npos) << got.out;
    }
  }
  // As in pods: with a /dev of its own, whatever the image contains.
  ASSERT_EQ(::symlink((climb() + "/secret").c_str(), (rootfs() + "/dev/console").c_str()), 0);
  ContainerSpec plain = shell("[ -c /dev/console ] && [ ! -L /dev/console ] && echo is a device");
  plain.spec.process.terminal = true;
  EXPECT_NE(run(plain).out.find("is a device"), std::string::npos);
}

// CVE-2025-52881: writes to procfs (labels, sysctls, scores) reach a file system that the attacker prepared.
TEST_P(MountAttack, what_is_written_to_proc_reaches_proc) {
  std::string fake = volume();
  for (const char* name : {"/ip_unprivileged_port_start", "/oom_score_adj"}) write_text(fake + name, "");
  ASSERT_EQ(::symlink("/proc/sysrq-trigger", (fake + "/somaxconn").c_str()), 0);
  for (const char* place : {"/proc/sys/net/ipv4", "/proc/sys/net/ipv4/", "/proc/self/../sys", "/proc/./sys/net/ipv4"}) {
    ContainerSpec spec = shell("true");
    bind(spec, fake, place);
    EXPECT_NE(run(spec).refusal.find("mount"), std::string::npos) << place;
  }
  link("/proc/sys/net/ipv4", "/ipv4");
  ContainerSpec spec = shell("true");
  spec.spec.linux_.sysctl = {{"net.ipv4.ip_unprivileged_port_start", "80"}};
  bind(spec, fake, "/ipv4");
  Outcome got = run(spec);
  EXPECT_EQ(read_text(fake + "/ip_unprivileged_port_start"), "") << got.refusal;
  EXPECT_NE(got.refusal.find("net.ipv4.ip_unprivileged_port_start"), got.refusal.npos) << got.refusal << got.out;
  // A procfs that the attacker prepared is not used: only the type is taken from the specification.
  ContainerSpec own = shell("cat /proc/sys/net/ipv4/ip_unprivileged_port_start");
  own.spec.linux_.sysctl = {{"net.ipv4.ip_unprivileged_port_start", "81"}};
  EXPECT_EQ(run(own).out, "81\n");
}

// CVE-2026-41579, CVE-2026-47766: /dev in the image is a link, and device nodes are created at its target.
TEST_P(MountAttack, no_device_is_made_through_a_link) {
  ContainerSpec bare = shell("true");  // without a /dev of its own, the nodes are created in the image's /dev
  for (const char* place : {"/dev", "/dev/pts", "/dev/shm", "/dev/mqueue"}) drop_mount(bare, place);
  for (const std::string& target : {host(), climb(), std::string("/tmp")}) {
    link(target, "/dev");
    EXPECT_NE(run(shell("true")).refusal.find("mounts: /dev"), std::string::npos) << target;
    Outcome got = run(bare);
    EXPECT_NE(got.refusal.find("devices: /dev/"), got.refusal.npos) << target << ": " << got.refusal;
  }
  EXPECT_TRUE(fs::is_empty(rootfs() + "/tmp"));
  fs::rename(rootfs() + "/dev", rootfs() + "/evil");
  fs::create_directory(rootfs() + "/dev");
  Exchanger race(rootfs() + "/dev", rootfs() + "/evil");
  for (int i = 0; i < tries(40); ++i) {
    (void)run(bare);
    (void)run(shell("true"));
  }
  EXPECT_TRUE(fs::is_empty(rootfs() + "/tmp"));
}

// CVE-2024-5154: a file that every container gets (mtab, hosts) is written through the image's /etc.
TEST_P(MountAttack, files_for_every_container_stay_inside) {
  write_text(volume() + "/hosts", "127.0.0.1 localhost\n");
  for (const std::string& target : {host() + "/etc", climb() + "/etc"}) {
    link(target, "/etc");
    ContainerSpec spec = shell("cat /etc/hosts; ls /etc");
    bind(spec, volume() + "/hosts", "/etc/hosts", {"bind", "ro"});
    bind(spec, volume() + "/hosts", "/etc/resolv.conf", {"bind", "ro"});
    Outcome got = run(spec);
    EXPECT_EQ(got.out, "127.0.0.1 localhost\nhosts\nresolv.conf\n") << got.refusal;
  }
  for (const char* name : {"hosts", "resolv.conf"}) {  // here the file itself is the link
    fs::remove_all(rootfs() + "/etc");
    fs::create_directory(rootfs() + "/etc");
    ASSERT_EQ(::symlink((climb() + "/secret").c_str(), (rootfs() + "/etc/" + name).c_str()), 0);
    ContainerSpec spec = shell(std::string("cat /etc/") + name);
    bind(spec, volume() + "/hosts", std::string("/etc/") + name, {"bind", "ro"});
    Outcome got = run(spec);
    EXPECT_EQ(got.out, got.refusal.empty() ? "127.0.0.1 localhost\n" : got.out);
  }
}

// GHSA-7ww5-4wqc-m92c, hidden by Docker since: the processor's sensors reveal information about other containers.
TEST_P(MountAttack, sensors_are_out_of_sight) {
  std::string sys = volume();
  MUST(sys::make_directories(sys + "/devices/virtual/powercap/intel-rapl:0"));
  write_text(sys + "/devices/virtual/powercap/intel-rapl:0/energy_uj", "12345\n");
  MUST(sys::make_directories(sys + "/firmware"));
  write_text(sys + "/firmware/table", "12345\n");
  ContainerSpec spec =
      shell("ls /sys/devices/virtual/powercap /sys/firmware | grep -v : ; cat /sys/devices/virtual/powercap/*/*; true");
  drop_mount(spec, "/sys/fs/cgroup");
  for (oci::Mount& mount : spec.spec.mounts)
    if (mount.destination == "/sys") mount.type = "bind", mount.source = sys, mount.options = {"rbind", "ro"};
  Outcome got = run(spec);
  EXPECT_EQ(got.refusal, "");
  EXPECT_EQ(got.out.find("12345"), got.out.npos) << got.out;
  EXPECT_EQ(got.out.find("intel-rapl"), got.out.npos) << got.out;
  spec.spec.linux_.masked_paths.clear();  // the control: without masks it would be visible
  EXPECT_NE(run(spec).out.find("12345"), std::string::npos);
}

}  // namespace
}  // namespace coracle::attacks

// SPDX-License-Identifier: Apache-2.0
// Attacks of a container's process on the runtime: its programs, descriptors, privileges, groups, and strings under the
// attacker's control. advisories.tsv lists the advisories.
#include <grp.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <atomic>
#include <thread>

#include "tests/attacks/attack_fixture.h"

namespace coracle::attacks {
namespace {

class ProcessAttack : public Attack {
 protected:
  static constexpr int kDescriptors = 48;  // more than any launch has open
};
INSTANTIATE_TEST_SUITE_P(Of, ProcessAttack, testing::Values(Caller::daemon, Caller::command_line, Caller::own_users), name_of);

// CVE-2019-5736: the runtime executes itself inside the container, where root may write to its file.
TEST_P(ProcessAttack, the_runtime_s_own_programs_cannot_be_overwritten) {
  struct Program {
    std::string path, before;
  };
  std::vector<Program> programs;
  for (const char* path : {CORACLE_PAUSE, CORACLE_OCI}) programs.push_back({path, read_text(path)});
  write_text(rootfs() + "/script", "#!/proc/self/exe\n", 0755);
  // A process in the container waits for another process whose program is not the container's, holds that program open, and tries
  // to write to it repeatedly until nothing executes it any more.
  const std::string watcher =
      "while true; do for p in /proc/[0-9]*; do exe=$(readlink $p/exe); case $exe in ''|/bin/busybox) ;; *) echo seen "
      "$exe >>/tmp/seen; "
      "(exec 8<$p/exe; for i in 0 1 2 3 4 5 6 7 8 9; do (printf X >>/proc/self/fd/8) 2>/dev/null && echo WRITTEN "
      ">>/tmp/seen; "
      "usleep 20000; done) & esac; done; usleep 1000; done";
  ASSERT_EQ(start(shell(watcher)).refusal, "");
  for (int i = 0; i < 10; ++i)
    for (const char* program : {"/proc/self/exe", "/script", "/proc/thread-self/exe", "/bin/true"}) (void)exec({program});
  ::usleep(250000);
  stop();
  const std::string seen = read_text(rootfs() + "/tmp/seen");
  EXPECT_EQ(seen.find("WRITTEN"), seen.npos) << seen;
  for (std::string_view line : split(seen, '\n'))
    EXPECT_TRUE(!line.starts_with("seen ") || line.starts_with("seen /memfd:") || line == "seen /")  // on a mount of its own
        << "a program of the host's: " << line;
  for (const char* program : {"/proc/self/exe", "/script"}) {
    ContainerSpec self = fixture_->program("app-0", {program});
    (void)run(self);
  }
  for (const Program& program : programs)
    EXPECT_TRUE(read_text(program.path) == program.before) << program.path << " was changed";
  // The visible program is a copy that nobody can write to.
  if (is_pod()) {
    auto state = runtime().sandbox("pod");
    ASSERT_TRUE(state.ok());
    std::string exe = "/proc/" + std::to_string(state->pid) + "/exe";
    EXPECT_LT(::open(exe.c_str(), O_WRONLY | O_CLOEXEC), 0) << "sealed, or busy";
    EXPECT_NE(fs::read_symlink(exe).string().find("memfd:"), std::string::npos) << fs::read_symlink(exe);
  }
}

// CVE-2024-21626: a descriptor that the runtime left open is used as the working directory or in a path.
TEST_P(ProcessAttack, a_descriptor_of_the_runtime_s_is_no_working_directory) {
  for (int fd = 0; fd < kDescriptors; ++fd) {
    for (const char* way : {"", "/..", "/../../../.."}) {
      ContainerSpec spec = shell("pwd; cat ." + host() + "/secret; cat ../../../.." + host() + "/secret; true");
      spec.spec.process.cwd = "/proc/self/fd/" + std::to_string(fd) + way;
      if (GetParam() == Caller::command_line && fd % 4 != 0) continue;  // slow, so only a sample
      Outcome got = run(spec);
      EXPECT_EQ(got.out.find("the host's secret"), got.out.npos) << spec.spec.process.cwd << "\n" << got.out;
    }
  }
  ASSERT_EQ(start(shell("sleep 1000")).refusal, "");
  for (int fd = 0; fd < kDescriptors; fd += is_pod() ? 1 : 4) {
    Outcome got = exec({"/bin/sh", "-c", "cat ." + host() + "/secret; cat ../../../../../.." + host() + "/secret; pwd"},
                       "/proc/self/fd/" + std::to_string(fd));
    EXPECT_EQ(got.out.find("the host's secret"), got.out.npos) << fd << "\n" << got.out;
  }
  stop();
}

TEST_P(ProcessAttack, a_descriptor_of_the_runtime_s_is_no_way_to_a_program) {
  // The program is looked up last; a descriptor that is still open then leads to the host's files.
  const std::string program = "/../../../../../../../../../.." + host() + "/echo";
  for (int fd = 0; fd < kDescriptors; ++fd) {
    if (GetParam() == Caller::command_line && fd > 24) break;  // slow, and there is nothing beyond
    const std::string path = "/proc/self/fd/" + std::to_string(fd) + program;
    Outcome got = run(fixture_->program("app-0", {path, "HOST"}));
    EXPECT_EQ(got.out.find("HOST\n"), got.out.npos) << path << " is the host's program";
  }
  ASSERT_EQ(start(shell("sleep 1000")).refusal, "");
  for (int fd = 0; fd < kDescriptors; fd += is_pod() ? 1 : 4) {
    Outcome got = exec({"/proc/self/fd/" + std::to_string(fd) + program, "HOST"});
    EXPECT_TRUE(!got.refusal.empty() || got.out.find("HOST\n") == got.out.npos) << fd << " is the host's program: " << got.out;
  }
  stop();
}

TEST_P(ProcessAttack, inherits_no_descriptor) {
  EXPECT_EQ(run(shell("echo $(ls /proc/self/fd)")).out, "0 1 2 3\n");  // 3 is ls reading the directory
  ASSERT_EQ(start(shell("sleep 1000")).refusal, "");
  EXPECT_EQ(exec({"/bin/sh", "-c", "echo $(ls /proc/self/fd)"}).out, "0 1 2 3\n");
  stop();
}

// CVE-2026-55686: the working directory is created on the host, through a link in the image.
TEST_P(ProcessAttack, the_working_directory_is_made_inside) {
  ASSERT_EQ(::symlink((climb() + "/etc").c_str(), (rootfs() + "/work").c_str()), 0);
  ASSERT_EQ(::symlink(host().c_str(), (rootfs() + "/srv").c_str()), 0);
  for (const char* cwd : {"/work/dir", "/srv/a/b", "/work", "/srv/../work/x", "/../../.."}) {
    ContainerSpec spec = shell("true");
    spec.spec.process.cwd = cwd;
    (void)run(spec);  // TearDown checks that nothing was created
  }
  fs::create_directory(rootfs() + "/place");
  ASSERT_EQ(::symlink(climb().c_str(), (rootfs() + "/evil").c_str()), 0);
  ContainerSpec spec = shell("cat ../secret; cat secret; true");
  spec.spec.process.cwd = "/place/made";
  spec.spec.process.user.uid = spec.spec.process.user.gid = 1000;
  Exchanger race(rootfs() + "/place", rootfs() + "/evil");
  for (int i = 0; i < tries(100); ++i) {
    Outcome got = run(spec);
    EXPECT_EQ(got.out.find("the host's secret"), got.out.npos) << got.out;
  }
}

// CVE-2022-29162, 24769, 27649, 27650, 27651, 27652: capabilities that a file can inherit.
TEST_P(ProcessAttack, no_capability_can_be_inherited) {
  // The caller's own inheritable set is full: none of it may be passed on.
  __user_cap_header_struct head{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2];
  ASSERT_EQ(::syscall(SYS_capget, &head, data), 0);
  __user_cap_data_struct full[2] = {data[0], data[1]};
  for (auto& part : full) part.inheritable = part.permitted;
  ASSERT_EQ(::syscall(SYS_capset, &head, full), 0);
  // A copy of busybox that takes an inheritable capability: raw sockets.
  fs::create_directory(rootfs() + "/taker");
  fs::copy_file(rootfs() + "/bin/busybox", rootfs() + "/taker/cat");
  const unsigned char attribute[] = {0, 0, 0, 2, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0xff, 1, 0, 0};
  ASSERT_EQ(::setxattr((rootfs() + "/taker/cat").c_str(), "security.capability", attribute, sizeof attribute, 0), 0);
  ContainerSpec spec =
      shell("grep -E 'CapInh|CapPrm|CapAmb' /proc/self/status; /taker/cat /proc/self/status | grep CapEff; sleep 1000");
  spec.spec.process.user.uid = spec.spec.process.user.gid = 1000;
  const std::string none = "0000000000000000\n";
  const std::string want = "CapInh:\t" + none + "CapPrm:\t" + none + "CapAmb:\t" + none;
  Outcome started = start(spec);
  EXPECT_EQ(started.refusal, "");
  Outcome inside =
      exec({"/bin/sh", "-c", "grep -E 'CapInh|CapPrm|CapAmb' /proc/self/status; /taker/cat /proc/self/status | grep CapEff"});
  EXPECT_EQ(inside.out, want + "CapEff:\t" + none) << inside.refusal;
  std::string status = read_text("/proc/" + std::to_string(pid()) + "/status");
  EXPECT_NE(status.find("CapInh:\t" + none), status.npos) << status;
  stop();
  ASSERT_EQ(::syscall(SYS_capset, &head, data), 0);
}

// CVE-2022-2995, CVE-2022-36109, CVE-2023-25173: missing groups give access to files that exclude a group; additional groups give
// access to others.
TEST_P(ProcessAttack, has_the_groups_it_was_given_and_no_others) {
  const gid_t own[] = {4242};
  gid_t before[64];
  int count = ::getgroups(64, before);
  ASSERT_GE(count, 0);
  ASSERT_EQ(::setgroups(1, own), 0);  // the caller's own: none of it may be passed on
  ContainerSpec spec = shell("grep ^Groups /proc/self/status; sleep 1000");
  spec.spec.process.user = {.uid = 1000, .gid = 2000, .additional_gids = {2000, 3000}};
  EXPECT_EQ(start(spec).refusal, "");
  EXPECT_EQ(exec({"/bin/sh", "-c", "grep ^Groups /proc/self/status"}).out, "Groups:\t2000 3000 \n");
  std::string status = read_text("/proc/" + std::to_string(pid()) + "/status");
  const uint32_t first = GetParam() == Caller::own_users ? kOwnUsers : 0;  // in the host's user namespace
  EXPECT_NE(status.find("Groups:\t" + std::to_string(first + 2000) + " " + std::to_string(first + 3000)), status.npos) << status;
  stop();
  EXPECT_EQ(::setgroups(size_t(count), before), 0);
}

// The subject of these three: a file that everybody but group 2000 may read, and a program with another group. The agent lists a
// user's own group among the additional ones (ContainerSpec.user_and_groups), which keeps the file closed.
TEST_P(ProcessAttack, a_group_that_is_kept_out_stays_out) {
  write_text(rootfs() + "/closed", "not for group 2000\n");
  ASSERT_EQ(::chown((rootfs() + "/closed").c_str(), 0, 2000), 0);
  ASSERT_EQ(::chmod((rootfs() + "/closed").c_str(), 0604), 0);
  fs::copy_file(ESCAPE, rootfs() + "/taker");
  ASSERT_EQ(::chown((rootfs() + "/taker").c_str(), 0, 5000), 0);
  ASSERT_EQ(::chmod((rootfs() + "/taker").c_str(), 02755), 0);
  ContainerSpec spec = fixture_->program("app-0", {"/taker", "read", "/closed"});
  spec.spec.process.user = {.uid = 1000, .gid = 2000, .additional_gids = {2000}};
  EXPECT_NE(run(spec).out.find("ermission denied"), std::string::npos);
  spec.spec.process.user.additional_gids.clear();  // the control: the old behaviour
  EXPECT_EQ(run(spec).out, "not for group 2000\n");
}

// CVE-2026-30892: text after the number of a user is ignored, or changes the number.
TEST_P(ProcessAttack, a_user_is_read_to_its_end) {
  if (is_pod()) GTEST_SKIP() << "an exec of a pod's has the container's user";
  if (oci({"exec", "--help"}).out.find("--user") == std::string::npos) GTEST_SKIP() << "there is no exec --user";
  ContainerSpec spec = shell("sleep 1000");
  spec.spec.process.user = {.uid = 1000, .gid = 1000};
  ASSERT_EQ(start(spec).refusal, "");
  for (const char* user : {"1000x", "x1000", "-1", "4294967296", "4294967295", "18446744073709551616", "1000:", ":5", ":",
                           "1000:5x", "1000:-1", "1000:4294967296", "0x0", " 0", "0 ", "+0", "1e3", "1000:5:0", "1000,0"}) {
    Outcome got = oci({"exec", "--user", user, "app-0", "id"});
    EXPECT_NE(got.code, 0) << '"' << user << "\": " << got.out;
    EXPECT_EQ(got.out.find("uid="), got.out.npos) << '"' << user << "\": " << got.out;
  }
  EXPECT_NE(oci({"exec", "--user", "1001", "app-0", "id"}).out.find("uid=1001"), std::string::npos);
  EXPECT_NE(oci({"exec", "--user", "1001:2002", "app-0", "id"}).out.find("uid=1001 gid=2002"), std::string::npos);
  stop();
}

// CVE-2022-4318: a variable with a line break becomes a line of /etc/passwd.
TEST_P(ProcessAttack, variables_write_no_files) {
  std::string before = tree_of(rootfs() + "/etc");
  ContainerSpec spec = shell("cat /etc/passwd; id -un 0; true");
  spec.spec.process.user.uid = 1000;
  spec.spec.process.env.push_back("HOME=/\nevil::0:0::/:/bin/sh");
  Outcome got = run(spec);
  EXPECT_EQ(got.out.find("evil"), got.out.npos) << got.out;
  EXPECT_EQ(tree_of(rootfs() + "/etc"), before);
}

// CVE-2021-43784: after a string longer than 64 KiB, the rest is parsed as another message.
TEST_P(ProcessAttack, long_strings_stay_strings) {
  for (size_t size : {size_t(65535), size_t(65536), size_t(65537), size_t(100000)}) {
    // The bytes beyond a 16-bit length imitate parts of a launch message.
    std::string text(size, 'A');
    ContainerSpec spec = shell("echo ${#LONG} ${#1}; readlink /proc/self/ns/user; grep -c . /proc/self/mounts");
    spec.spec.process.args.insert(spec.spec.process.args.end(), {"sh", text});
    spec.spec.process.env.push_back("LONG=" + text);
    Outcome got = run(spec);
    std::string number = std::to_string(size);
    EXPECT_TRUE(got.out.starts_with(number + " " + number + "\n")) << got.refusal << got.out.substr(0, 200);
    ContainerSpec longpath = shell("true");
    tmpfs(longpath, "/" + text);
    EXPECT_NE(run(longpath).refusal, "") << size;
    ContainerSpec longcwd = shell("true");
    longcwd.spec.process.cwd = "/" + text;
    EXPECT_NE(run(longcwd).refusal, "") << size;
    ContainerSpec longsource = shell("true");
    bind(longsource, fixture_->path() + "/" + text, "/data");
    EXPECT_NE(run(longsource).refusal, "") << size;
  }
}

// CVE-2025-47291: a process of the pod outside the pod's cgroup has no limits.
TEST_P(ProcessAttack, every_process_is_in_the_container_s_cgroup) {
  ASSERT_EQ(start(shell("sleep 1001 & sleep 1000")).refusal, "");
  auto cgroup_of = [](int pid) {
    const std::string text = read_text("/proc/" + std::to_string(pid) + "/cgroup");
    for (std::string_view line : split(text, '\n'))
      if (line.starts_with("0::")) return std::string(line.substr(3));
    return std::string();
  };
  const std::string wanted = cgroup_of(pid());
  EXPECT_GT(wanted.size(), 1u);
  EXPECT_NE(wanted, cgroup_of(::getpid()));
  if (is_pod()) {
    EXPECT_TRUE(wanted.ends_with("/pod/c-app-0")) << wanted << ": beneath its pod's, whose limits hold for all";
  }
  auto namespace_of = [](int pid) {
    std::error_code error;
    return fs::read_symlink("/proc/" + std::to_string(pid) + "/ns/pid", error).string();
  };
  std::string space;  // during an exec, a process does not always show its namespaces
  for (int tries = 0; space.empty() && tries < 1000; ++tries) {
    space = namespace_of(pid());
    if (space.empty()) ::usleep(1000);
  }
  ASSERT_NE(space, "");
  // All processes in the container's pid namespace, including the children of an exec.
  std::atomic<bool> enough = false;
  std::thread other([&] {
    while (!enough) (void)exec({"/bin/sh", "-c", "sleep 0.3 & sleep 0.3"});
  });
  size_t seen = 0, of_exec = 0;
  for (int round = 0; round < 20 || ((seen <= 40 || of_exec == 0) && round < 3000); ++round) {
    for (const auto& entry : fs::directory_iterator("/proc")) {
      int each = std::atoi(entry.path().filename().c_str());
      if (each <= 0 || namespace_of(each) != space) continue;
      std::string group = cgroup_of(each);
      if (group.empty()) continue;  // it has ended
      ++seen;
      of_exec += read_text("/proc/" + std::to_string(each) + "/cmdline").find("0.3") != std::string::npos;
      EXPECT_EQ(group, wanted) << each;
    }
    ::usleep(20000);
  }
  enough = true;
  other.join();
  EXPECT_GT(of_exec, 0u);
  EXPECT_GT(seen, 40u);
  stop();
}

}  // namespace
}  // namespace coracle::attacks

// SPDX-License-Identifier: Apache-2.0
// The life cycle of containers: logs, exec, terminals, input; a daemon that is killed while they run; and that nothing is left
// after their removal.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <set>
#include <thread>

#include "runtime/sys/mount.h"
#include "tests/processor_time.h"
#include "tests/runtime/container/live_runtime.h"
#include "tests/runtime/expect.h"

namespace coracle::runtime {
namespace {

class LifeLive : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::string why = LiveRuntime::missing(); !why.empty()) GTEST_SKIP() << why;
    fixture_ = std::make_unique<LiveRuntime>();
    ASSERT_OK(fixture_->open());
    SandboxSpec spec;
    spec.id = "pod";
    ASSERT_OK(runtime().create_sandbox(spec));
  }
  Runtime& runtime() { return *fixture_->runtime; }
  std::optional<ContainerState> state(const std::string& id, const std::string& sandbox = "pod") {
    auto state = runtime().sandbox(sandbox);
    if (!state) return std::nullopt;
    for (auto& container : state->containers)
      if (container.id == id) return container;
    return std::nullopt;
  }
  int wait(const std::string& id, const std::string& sandbox = "pod") {
    for (int i = 0; i < 60'000; ++i) {
      auto now = state(id, sandbox);
      if (!now) return -2;
      if (now->exit) return now->exit->exit_code;
      ::usleep(1000);
    }
    return -1;
  }
  static std::string read_to_end(const Fd& fd) {
    std::string out;
    char buffer[4096];
    for (ssize_t n; (n = ::read(fd.get(), buffer, sizeof buffer)) > 0;) out.append(buffer, size_t(n));
    return out;
  }
  std::unique_ptr<LiveRuntime> fixture_;
};

// ---- logs ----

TEST_F(LifeLive, writes_logs_as_kubernetes_reads_them) {
  ASSERT_OK(runtime().start_container(
      "pod", fixture_->shell("app-0", "echo one; echo two >&2; printf 'no newline'; echo; printf tail")));
  EXPECT_EQ(wait("app-0"), 0);
  std::string log = fixture_->log("app-0");
  EXPECT_EQ(fixture_->output("app-0"), "one\nno newline\ntail") << log;
  EXPECT_EQ(fixture_->output("app-0", "stderr"), "two\n") << log;
  for (std::string_view line : split(trim(log), '\n')) {
    auto parts = split(line, ' ');
    ASSERT_GE(parts.size(), 4u) << line;
    EXPECT_EQ(parts[0].size(), 30u) << line;
    auto time = parse_time(parts[0]);
    ASSERT_TRUE(time.ok()) << line;
    EXPECT_LT(std::chrono::abs(system_clock().now() - *time), std::chrono::seconds(60)) << line;
    EXPECT_EQ(parts[2], parts[3] == "tail" ? "P" : "F") << line;
  }
}

TEST_F(LifeLive, splits_long_lines_and_keeps_every_byte) {
  // 40000 bytes on one line: two parts of 16384 bytes and the rest.
  ASSERT_OK(runtime().start_container("pod", fixture_->shell("app-0", "head -c 40000 /dev/zero | tr '\\0' x; echo; echo end")));
  EXPECT_EQ(wait("app-0"), 0);
  EXPECT_EQ(fixture_->output("app-0"), std::string(40000, 'x') + "\nend\n");
  std::vector<std::string> tags;
  std::string log = fixture_->log("app-0");
  for (std::string_view line : split(trim(log), '\n')) tags.emplace_back(split(line, ' ')[2]);
  EXPECT_EQ(tags, (std::vector<std::string>{"P", "P", "F", "F"}));
  // A line of exactly the limit is one part; one more byte makes two.
  ASSERT_OK(runtime().start_container(
      "pod", fixture_->shell("app-1", "head -c 16384 /dev/zero | tr '\\0' y; echo; head -c 16385 /dev/zero | tr '\\0' z; echo")));
  EXPECT_EQ(wait("app-1"), 0);
  EXPECT_EQ(fixture_->output("app-1"), std::string(16384, 'y') + "\n" + std::string(16385, 'z') + "\n");
}

TEST_F(LifeLive, loses_no_line_of_a_flood) {
  ASSERT_OK(runtime().start_container("pod", fixture_->shell("app-0", "seq 1 200000; seq 1 1000 >&2")));
  EXPECT_EQ(wait("app-0"), 0);
  std::string want;
  for (int i = 1; i <= 200000; ++i) want += std::to_string(i) + "\n";
  EXPECT_TRUE(fixture_->output("app-0") == want);
  EXPECT_EQ(std::count(want.begin(), want.begin() + 3893, '\n'), 1000);
  EXPECT_EQ(fixture_->output("app-0", "stderr"), want.substr(0, 3893));
}

TEST_F(LifeLive, rotates_logs) {
  ContainerSpec spec = fixture_->shell("app-0", "seq 1 20000");
  spec.log.rotate_at = Bytes(100000);
  spec.log.files = 3;
  ASSERT_OK(runtime().start_container("pod", spec));
  EXPECT_EQ(wait("app-0"), 0);
  EXPECT_TRUE(sys::exists(spec.log.path + ".1"));
  EXPECT_TRUE(sys::exists(spec.log.path + ".2"));
  EXPECT_FALSE(sys::exists(spec.log.path + ".3"));
  std::string all = MUST(sys::read_file(spec.log.path + ".2")) + MUST(sys::read_file(spec.log.path + ".1")) +
                    MUST(sys::read_file(spec.log.path));
  auto lines = split(trim(all), '\n');
  int want = 20000 - int(lines.size()) + 1;  // the last lines, without a gap
  for (std::string_view line : lines) {
    ASSERT_EQ(line.substr(line.rfind(' ') + 1), std::to_string(want)) << line;
    ++want;
  }
  EXPECT_EQ(want, 20001);
}

// ---- exec, terminals, input ----

TEST_F(LifeLive, executes_with_the_container_s_own_confinement) {
  ContainerSpec spec = fixture_->shell("app-0", "sleep 1000");
  spec.spec.process.user.uid = 1000;
  spec.spec.process.env.push_back("COLOR=green");
  spec.spec.process.cwd = "/tmp";
  ASSERT_OK(runtime().start_container("pod", spec));
  ExecSpec look;
  look.args = {"/bin/sh", "-c",
               "id -u; pwd; echo $COLOR; grep -E '^Seccomp:|CapEff|CapBnd' /proc/self/status; for n in pid mnt net uts "
               "cgroup; do readlink "
               "/proc/self/ns/$n; done; echo fine >&2; cat /proc/self/cgroup | grep ^0::; ls /proc/self/fd | wc -l"};
  auto exec = runtime().exec("pod", "app-0", look);
  ASSERT_TRUE(exec.ok()) << exec.error().text();
  Fd out_end = (*exec)->take_stdout(), err_end = (*exec)->take_stderr();
  std::string out = read_to_end(out_end), err = read_to_end(err_end);
  EXPECT_EQ((*exec)->wait({}).value_or(-1), 0);
  EXPECT_EQ(err, "fine\n");
  auto lines = split(trim(out), '\n');
  ASSERT_EQ(lines.size(), 13u) << out << err;
  EXPECT_EQ(lines[0], "1000");
  EXPECT_EQ(lines[1], "/tmp");
  EXPECT_EQ(lines[2], "green");
  EXPECT_EQ(lines[3], "CapEff:\t0000000000000000");
  EXPECT_EQ(lines[5], "Seccomp:\t2");
  int pid = state("app-0")->pid;
  const char* names[] = {"pid", "mnt", "net", "uts", "cgroup"};
  for (int i = 0; i < 5; ++i) {
    char link[64];
    ssize_t n = ::readlink(("/proc/" + std::to_string(pid) + "/ns/" + names[i]).c_str(), link, sizeof link);
    EXPECT_EQ(lines[size_t(6 + i)], std::string_view(link, size_t(n))) << names[i];
  }
  EXPECT_EQ(lines[11], "0::/");
  EXPECT_EQ(lines[12], "4");
  ExecSpec missing;
  missing.args = {"nothing"};
  auto failed = runtime().exec("pod", "app-0", missing);
  ASSERT_FALSE(failed.ok());
  EXPECT_NE(failed.error().text().find("executable file not found in $PATH"), std::string::npos) << failed.error().text();
}

// The kernel numbers all mounts ever made. Nothing if it does not (before Linux 6.8).
std::optional<uint64_t> number_of_a_new_mount() {
  constexpr unsigned kUniqueId = 0x4000;  // STATX_MNT_ID_UNIQUE, missing in older headers
  Fd mount = MUST(sys::clone_mount("/", false));
  struct statx about {};
  if (::statx(mount.get(), "", AT_EMPTY_PATH, kUniqueId, &about) < 0 || !(about.stx_mask & kUniqueId)) return std::nullopt;
  return about.stx_mnt_id;
}

TEST_F(LifeLive, executes_without_a_mount) {  // making and dropping one takes longer than all the rest
  if (!number_of_a_new_mount()) GTEST_SKIP() << "this kernel does not number mounts";
  ContainerSpec spec = fixture_->shell("app-0", "sleep 1000");
  spec.spec.process.oom_score_adj = 321;  // written to a procfs
  ASSERT_OK(runtime().start_container("pod", spec));
  ExecSpec score;
  score.args = {"/bin/cat", "/proc/self/oom_score_adj"};
  uint64_t least = UINT64_MAX;
  // Others on this machine make mounts, too: a moment without any is awaited.
  const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (least > 1 && std::chrono::steady_clock::now() < until) {
    const uint64_t before = *number_of_a_new_mount();
    auto exec = runtime().exec("pod", "app-0", score);
    ASSERT_TRUE(exec.ok()) << exec.error().text();
    least = std::min(least, *number_of_a_new_mount() - before);
    Fd out_end = (*exec)->take_stdout();
    EXPECT_EQ(read_to_end(out_end), "321\n");
    EXPECT_EQ((*exec)->wait({}).value_or(-1), 0);
  }
  EXPECT_EQ(least, 1u);
}

TEST_F(LifeLive, feeds_an_exec_s_input) {
  ASSERT_OK(runtime().start_container("pod", fixture_->shell("app-0", "sleep 1000")));
  ExecSpec spec;
  spec.args = {"/bin/cat"};
  spec.use_stdin = true;
  auto exec = runtime().exec("pod", "app-0", spec);
  ASSERT_TRUE(exec.ok());
  Fd in = (*exec)->take_stdin(), out = (*exec)->take_stdout();
  ASSERT_OK(sys::write_all(in, "over there"));
  in.reset();
  EXPECT_EQ(read_to_end(out), "over there");
  EXPECT_EQ((*exec)->wait({}).value_or(-1), 0);
}

TEST_F(LifeLive, gives_an_exec_a_terminal) {
  ASSERT_OK(runtime().start_container("pod", fixture_->shell("app-0", "sleep 1000")));
  ExecSpec spec;
  spec.args = {"/bin/sh", "-c", "tty; stty size; read line; stty size; echo got $line; exit 5"};
  spec.terminal = true;
  spec.use_stdin = true;
  spec.width = 101;
  spec.height = 37;
  auto exec = runtime().exec("pod", "app-0", spec);
  ASSERT_TRUE(exec.ok()) << exec.error().text();
  Fd in = (*exec)->take_stdin(), out = (*exec)->take_stdout();
  std::string said;
  char buffer[256];
  while (said.find("37 101") == said.npos) {
    ssize_t n = ::read(out.get(), buffer, sizeof buffer);
    ASSERT_GT(n, 0) << said;
    said.append(buffer, size_t(n));
  }
  ASSERT_OK((*exec)->resize(80, 24));
  ASSERT_OK(sys::write_all(in, "word\n"));
  said += read_to_end(out);
  EXPECT_NE(said.find("/dev/pts/0"), std::string::npos) << said;
  EXPECT_NE(said.find("24 80"), std::string::npos) << said;
  EXPECT_NE(said.find("got word"), std::string::npos) << said;
  EXPECT_EQ((*exec)->wait({}).value_or(-1), 5);
}

TEST_F(LifeLive, ends_an_exec_that_is_let_go) {
  ASSERT_OK(runtime().start_container("pod", fixture_->shell("app-0", "sleep 1000")));
  for (int i = 0; i < 200; ++i) {  // more than pause can hold at once
    ExecSpec spec;
    spec.args = {"/bin/sleep", "2000"};
    auto exec = runtime().exec("pod", "app-0", spec);
    ASSERT_TRUE(exec.ok()) << i << ": " << exec.error().text();
  }
  ExecSpec look;
  look.args = {"/bin/sh", "-c",
               "i=0; while [ $i -lt 3000 ]; do ps | grep 'bin/sleep 200[0]' || exit 0; i=$((i+1)); usleep 20000; done; exit 1"};
  auto exec = runtime().exec("pod", "app-0", look);
  ASSERT_TRUE(exec.ok());
  Fd out = (*exec)->take_stdout();
  EXPECT_EQ((*exec)->wait({}).value_or(-1), 0) << read_to_end(out);
}

TEST_F(LifeLive, a_container_can_have_a_terminal_and_be_attached) {
  ContainerSpec spec =
      fixture_->shell("app-0", "tty; readlink /proc/self/fd/0; ls /dev/console; read line; echo got $line; exit 3");
  spec.spec.process.terminal = true;
  spec.open_stdin = true;
  ASSERT_OK(runtime().start_container("pod", spec));
  fixture_->wait_log("app-0", "/dev/console");
  auto attached = runtime().attach("pod", "app-0", true);
  ASSERT_TRUE(attached.ok()) << attached.error().text();
  Fd in = (*attached)->take_stdin(), out = (*attached)->take_stdout();
  ASSERT_OK((*attached)->resize(80, 24));
  ASSERT_OK(sys::write_all(in, "word\n"));
  std::string said = read_to_end(out);
  EXPECT_NE(said.find("got word"), std::string::npos) << said;
  EXPECT_EQ((*attached)->wait({}).value_or(-1), 3);
  EXPECT_NE(fixture_->output("app-0").find("got word"), std::string::npos);
}

TEST_F(LifeLive, attach_follows_output_and_feeds_input) {
  ContainerSpec spec =
      fixture_->shell("app-0", "echo early; while read line; do echo got $line; echo err $line >&2; done; echo end");
  spec.open_stdin = spec.stdin_once = true;
  ASSERT_OK(runtime().start_container("pod", spec));
  fixture_->wait_log("app-0", "early");
  auto attached = runtime().attach("pod", "app-0", true);
  ASSERT_TRUE(attached.ok()) << attached.error().text();
  Fd in = (*attached)->take_stdin(), out = (*attached)->take_stdout(), err = (*attached)->take_stderr();
  auto second = runtime().attach("pod", "app-0", true);
  ASSERT_TRUE(second.ok()) << second.error().text();
  EXPECT_FALSE((*second)->take_stdin()) << "stdin is the first one's, and ends with it";
  ASSERT_OK(sys::write_all(in, "one\ntwo\n"));
  in.reset();
  EXPECT_EQ(read_to_end(out), "got one\ngot two\nend\n");
  EXPECT_EQ(read_to_end(err), "err one\nerr two\n");
  EXPECT_EQ((*attached)->wait({}).value_or(-1), 0);
  EXPECT_EQ(fixture_->output("app-0"), "early\ngot one\ngot two\nend\n");
}

TEST_F(LifeLive, an_attachment_knows_the_exit_code_of_a_container_that_is_removed_with_its_sandbox) {
  ContainerSpec spec = fixture_->shell("app-0", "read line; exit 4");
  spec.open_stdin = true;
  ASSERT_OK(runtime().start_container("pod", spec));
  auto attached = runtime().attach("pod", "app-0", true);
  ASSERT_TRUE(attached.ok()) << attached.error().text();
  Fd in = (*attached)->take_stdin();
  ASSERT_OK(sys::write_all(in, "go\n"));
  EXPECT_EQ(wait("app-0"), 4);
  ASSERT_OK(runtime().remove_sandbox("pod"));
  auto code = (*attached)->wait({});
  ASSERT_TRUE(code.ok()) << code.error().text();
  EXPECT_EQ(*code, 4);
}

TEST_F(LifeLive, an_attached_reader_that_is_slow_loses_nothing_and_one_that_leaves_stops_nothing) {
  ContainerSpec spec = fixture_->shell("app-0", "read line; seq 1 50000");
  spec.open_stdin = true;
  ASSERT_OK(runtime().start_container("pod", spec));
  auto slow = runtime().attach("pod", "app-0", true);
  auto gone = runtime().attach("pod", "app-0", false);
  ASSERT_TRUE(slow.ok() && gone.ok());
  gone->reset();
  Fd in = (*slow)->take_stdin(), out = (*slow)->take_stdout();
  ASSERT_OK(sys::write_all(in, "go\n"));
  ::usleep(50000);  // by now the pipe is full and the container blocks
  EXPECT_FALSE(state("app-0")->exit);
  std::string said = read_to_end(out), want;
  for (int i = 1; i <= 50000; ++i) want += std::to_string(i) + "\n";
  EXPECT_TRUE(said == want);
  EXPECT_EQ(wait("app-0"), 0);
  EXPECT_TRUE(fixture_->output("app-0") == want);
}

// A process that gets the same event repeatedly never sleeps.
bool comes_to_rest(int pid) {
  for (int i = 0, asleep = 0; i < 60'000; ++i) {
    const std::string stat = MUST(sys::read_file("/proc/" + std::to_string(pid) + "/stat"));
    asleep = stat.find(") S ") == stat.npos ? 0 : asleep + 1;
    if (asleep == 20) return true;
    ::usleep(1000);
  }
  return false;
}

TEST_F(LifeLive, an_attached_client_that_leaves_a_quiet_container_leaves_nothing_to_do) {
  ContainerSpec spec = fixture_->shell("app-0", "read line; exit 5");
  spec.open_stdin = true;
  ASSERT_OK(runtime().start_container("pod", spec));
  auto attached = runtime().attach("pod", "app-0", true);
  ASSERT_TRUE(attached.ok());
  Fd in = (*attached)->take_stdin();
  (*attached)->take_stdout().reset();
  (*attached)->take_stderr().reset();
  EXPECT_TRUE(comes_to_rest(runtime().sandbox("pod")->pid));
  ASSERT_OK(sys::write_all(in, "go\n"));
  EXPECT_EQ(wait("app-0"), 5);
}

TEST_F(LifeLive, an_attached_reader_that_never_reads_holds_up_nobody) {
  ContainerSpec spec = fixture_->shell("app-0", "read line; seq 1 20000; exit 5");  // more than one pipe holds, less than two
  spec.open_stdin = true;
  ASSERT_OK(runtime().start_container("pod", spec));
  auto attached = runtime().attach("pod", "app-0", true);
  ASSERT_TRUE(attached.ok());
  Fd in = (*attached)->take_stdin(), out = (*attached)->take_stdout();
  ASSERT_OK(sys::write_all(in, "go\n"));
  EXPECT_EQ(wait("app-0"), 5) << "its end is known, although what it wrote last has not been read";
  EXPECT_TRUE(comes_to_rest(runtime().sandbox("pod")->pid)) << "the pause process does not look again and again";
  ASSERT_OK(runtime().start_container("pod", fixture_->shell("other-0", "exit 4")));
  EXPECT_EQ(wait("other-0"), 4);
  ASSERT_OK(runtime().remove_container("pod", "app-0"));
  std::string want;
  for (int i = 1; i <= 20000; ++i) want += std::to_string(i) + "\n";
  EXPECT_TRUE(fixture_->output("app-0") == want) << "the log has all of it";
}

TEST_F(LifeLive, what_others_go_on_writing_holds_up_no_end) {
  SandboxSpec spec;
  spec.id = "shared";
  spec.share_process_namespace = true;
  ASSERT_OK(runtime().create_sandbox(spec));
  ASSERT_OK(runtime().start_container("shared", fixture_->shell("app-0", "yes & exit 3")));
  ASSERT_TRUE(fixture_->wait_end("shared", "app-0"));
  ASSERT_OK(runtime().remove_sandbox("shared"));
}

// ---- the daemon ends, the containers stay ----

TEST_F(LifeLive, is_found_again_by_a_new_daemon) {
  ContainerSpec spec = fixture_->shell("app-0", "echo before; while [ ! -e /tmp/go ]; do usleep 1000; done; echo after; exit 9");
  spec.metadata = "kept";
  ASSERT_OK(runtime().start_container("pod", spec));
  ASSERT_OK(runtime().start_container("pod", fixture_->shell("done-0", "exit 4")));
  EXPECT_EQ(wait("done-0"), 4);
  fixture_->wait_log("app-0", "before");
  int pid = state("app-0")->pid;
  fixture_->runtime.reset();
  MUST(sys::replace_file(fixture_->rootfs() + "/tmp/go", ""));
  fixture_->wait_log("app-0", "after");
  ASSERT_OK(fixture_->open());
  auto pod = runtime().sandbox("pod");
  ASSERT_TRUE(pod.ok());
  EXPECT_TRUE(pod->alive);
  ASSERT_EQ(pod->containers.size(), 2u);
  EXPECT_EQ(wait("app-0"), 9);
  EXPECT_EQ(state("app-0")->metadata, "kept");
  EXPECT_EQ(state("done-0")->exit->exit_code, 4);
  EXPECT_EQ(fixture_->output("app-0"), "before\nafter\n");
  ASSERT_OK(runtime().start_container("pod", fixture_->shell("app-1", "sleep 1000")));
  EXPECT_NE(state("app-1")->pid, pid);
  ASSERT_OK(runtime().remove_sandbox("pod"));
}

// The daemon of this test: it starts short containers until it is killed, and prints those whose start succeeded.
[[noreturn]] void be_a_daemon(const std::string& path, int round) {
  LiveRuntime fixture(path);
  if (!fixture.open()) ::_exit(1);
  Fd said(::open((path + "/started").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  for (int i = 0;; ++i) {
    std::string id = "job-" + std::to_string(round) + "-" + std::to_string(i);
    auto started = fixture.runtime->start_container("pod", fixture.shell(id, "seq 1 300; exit 7"));
    if (!started) {
      std::fprintf(stderr, "%s\n", started.error().text().c_str());
      ::_exit(2);
    }
    std::string line = id + "\n";
    (void)!::write(said.get(), line.data(), line.size());
    // Removes old containers, so that the slots of the pod do not run out.
    auto state = fixture.runtime->sandbox("pod");
    if (!state) ::_exit(3);
    for (auto& container : state->containers)
      if (container.exit && container.id != id && state->containers.size() > 40)
        (void)fixture.runtime->remove_container("pod", container.id);
  }
}

TEST_F(LifeLive, survives_a_daemon_that_is_killed_again_and_again) {
  ContainerSpec steady = fixture_->shell("steady-0", "i=0; while true; do i=$((i+1)); echo tick $i; usleep 500; done");
  ASSERT_OK(runtime().start_container("pod", steady));
  const int pid = state("steady-0")->pid;
  fixture_->runtime.reset();
  const unsigned seed = std::random_device{}();
  std::mt19937 random(seed);
  constexpr int kRounds = 50, kJobs = 5;
  auto bytes_said = [&] { return sys::read_file(fixture_->path() + "/started").value_or("").size(); };
  for (int round = 0; round < kRounds; ++round) {
    const size_t said = bytes_said();
    pid_t daemon = ::fork();
    if (daemon == 0) be_a_daemon(fixture_->path(), round);
    // On a busy machine it starts nothing within that time, so every second one is killed after several starts only.
    for (int i = 0; i < 60'000 && round % 2 && bytes_said() < said + kJobs * std::strlen("job-0-0\n"); ++i) ::usleep(1000);
    ::usleep(20000 + random() % 120000);
    ASSERT_EQ(::kill(daemon, SIGKILL), 0);
    int status;
    ASSERT_EQ(::waitpid(daemon, &status, 0), daemon);
    ASSERT_TRUE(WIFSIGNALED(status)) << "round " << round << ": the daemon ended by itself, code " << WEXITSTATUS(status);
  }
  ASSERT_OK(fixture_->open());
  auto pod = runtime().sandbox("pod");
  ASSERT_TRUE(pod.ok() && pod->alive) << "seed " << seed;
  ASSERT_TRUE(state("steady-0"));
  EXPECT_EQ(state("steady-0")->pid, pid) << "seed " << seed;
  std::set<std::string> there;
  for (auto& container : pod->containers) there.insert(container.id);
  std::string want;
  for (int i = 1; i <= 300; ++i) want += std::to_string(i) + "\n";
  auto started = MUST(sys::read_file(fixture_->path() + "/started"));
  int jobs = 0, checked = 0;
  for (std::string_view line : split(trim(started), '\n')) {
    std::string id(line);
    ++jobs;
    if (there.count(id)) {
      EXPECT_EQ(wait(id), 7) << id << ", seed " << seed;
      ++checked;
    }
    EXPECT_EQ(fixture_->output(id), want) << id << ", seed " << seed;
  }
  EXPECT_GT(jobs, kRounds);
  EXPECT_GT(checked, 0);
  ASSERT_OK(runtime().kill_container("pod", "steady-0"));
  EXPECT_EQ(wait("steady-0"), 137);
  int tick = 0;
  std::string ticks = fixture_->output("steady-0");
  for (std::string_view line : split(trim(ticks), '\n')) ASSERT_EQ(line, "tick " + std::to_string(++tick)) << "seed " << seed;
  EXPECT_GT(tick, 100);
}

// The container's first process is frozen in its cgroup until `thaw`: its daemon dies before the start has finished.
class DiesWithinStart : public LifeLive {
 protected:
  void start_and_die(const ContainerSpec& spec) {
    fixture_->runtime.reset();
    cgroup_ = fixture_->config.cgroup_root + "/pod/c-" + spec.id;
    ASSERT_EQ(::mkdir(cgroup_.c_str(), 0755), 0);
    write("cgroup.freeze", "1");
    const pid_t daemon = ::fork();
    if (daemon == 0) {
      LiveRuntime same(fixture_->path());
      auto started = same.open();
      if (started) started = same.runtime->start_container("pod", spec);
      std::fprintf(stderr, "the start was over already: %s\n", started ? "it runs" : started.error().text().c_str());
      ::_exit(1);
    }
    for (int i = 0; i < 60'000 && trim(MUST(sys::read_file(cgroup_ + "/cgroup.procs"))).empty(); ++i) ::usleep(1000);
    ASSERT_EQ(::kill(daemon, SIGKILL), 0);
    int status;
    ASSERT_EQ(::waitpid(daemon, &status, 0), daemon);
    ASSERT_TRUE(WIFSIGNALED(status));
  }
  // The next daemon, which starts before the container's start has finished.
  void open_and_thaw() {
    std::thread thaw([&] {
      ::usleep(300000);
      write("cgroup.freeze", "0");
    });
    auto opened = fixture_->open();
    thaw.join();
    ASSERT_TRUE(opened.ok()) << opened.error().text();
  }

 private:
  void write(const std::string& name, const std::string& text) {
    std::ofstream out(cgroup_ + "/" + name);
    EXPECT_TRUE(out << text << std::flush);
  }
  std::string cgroup_;
};

TEST_F(DiesWithinStart, the_next_daemon_finds_the_container) {
  start_and_die(fixture_->shell("app-0", "echo begin; sleep 1000"));
  open_and_thaw();
  ASSERT_TRUE(state("app-0"));
  EXPECT_TRUE(state("app-0")->running);
  EXPECT_CODE(runtime().start_container("pod", fixture_->shell("app-0", "true")), Code::conflict);
  fixture_->wait_log("app-0", "begin");
  EXPECT_EQ(fixture_->output("app-0"), "begin\n");
  ASSERT_OK(runtime().kill_container("pod", "app-0"));
  EXPECT_EQ(wait("app-0"), 137);
}

TEST_F(DiesWithinStart, what_could_not_be_started_is_forgotten) {
  start_and_die(fixture_->program("app-0", {"/no/such/program"}));
  open_and_thaw();
  EXPECT_FALSE(state("app-0"));
  ASSERT_OK(runtime().start_container("pod", fixture_->shell("app-0", "exit 4")));
  EXPECT_EQ(wait("app-0"), 4);
}

TEST_F(LifeLive, knows_a_pod_whose_pause_was_killed) {
  ASSERT_OK(runtime().start_container("pod", fixture_->shell("app-0", "sleep 1000")));
  int pid = state("app-0")->pid, pause = runtime().sandbox("pod")->pid;
  std::atomic<bool> told = false;
  runtime().on_change([&](const std::string& id) { told = told || id == "pod"; });
  ASSERT_EQ(::kill(pause, SIGKILL), 0);
  // The first notification may still be about the start.
  for (int i = 0; i < 60'000 && (!told || runtime().sandbox("pod")->alive); ++i) ::usleep(1000);
  EXPECT_TRUE(told);
  EXPECT_FALSE(runtime().sandbox("pod")->alive);
  EXPECT_FALSE(state("app-0")->running);
  EXPECT_CODE(runtime().start_container("pod", fixture_->shell("app-1", "true")), Code::conflict);
  for (int i = 0; i < 60'000 && ::kill(pid, 0) == 0; ++i) ::usleep(1000);
  EXPECT_NE(::kill(pid, 0), 0);
  fixture_->runtime.reset();
  ASSERT_OK(fixture_->open());  // a new daemon sees the same
  EXPECT_FALSE(runtime().sandbox("pod")->alive);
  EXPECT_TRUE(state("app-0"));
  ASSERT_OK(runtime().remove_sandbox("pod"));
  EXPECT_CODE(runtime().sandbox("pod"), Code::not_found);
}

TEST_F(LifeLive, keeps_no_cgroup_of_a_container_that_has_ended) {
  const std::string cgroup = fixture_->config.cgroup_root + "/pod/c-app-0";
  ASSERT_OK(runtime().start_container("pod", fixture_->shell("app-0", "sleep 1000")));
  ASSERT_TRUE(sys::exists(cgroup));
  ASSERT_OK(runtime().kill_container("pod", "app-0"));
  EXPECT_EQ(wait("app-0"), 137);
  EXPECT_FALSE(sys::exists(cgroup));
  EXPECT_CODE(runtime().usage("pod", "app-0"), Code::not_found);
  fixture_->runtime.reset();
  ASSERT_OK(fixture_->open());  // a new daemon still reports how it ended
  ASSERT_TRUE(state("app-0") && state("app-0")->exit);
  EXPECT_EQ(state("app-0")->exit->exit_code, 137);
  ASSERT_OK(runtime().remove_container("pod", "app-0"));
}

TEST_F(LifeLive, ends_what_a_container_left_in_a_shared_process_namespace) {
  SandboxSpec spec;
  spec.id = "shared";
  spec.share_process_namespace = true;
  ASSERT_OK(runtime().create_sandbox(spec));
  ASSERT_OK(runtime().start_container("shared", fixture_->shell("app-0", "sleep 1000 & exit 3")));
  ASSERT_TRUE(fixture_->wait_end("shared", "app-0"));
  const std::string cgroup = fixture_->config.cgroup_root + "/shared/c-app-0/cgroup.events";
  auto is_populated = [&] {
    auto events = sys::read_file(cgroup);
    return events && events->find("populated 1") != events->npos;
  };
  for (int i = 0; i < 60'000 && is_populated(); ++i) ::usleep(1000);
  EXPECT_FALSE(is_populated());
  ASSERT_OK(runtime().remove_container("shared", "app-0"));
  ASSERT_OK(runtime().remove_sandbox("shared"));
}

TEST_F(LifeLive, leaves_nothing_behind) {
  auto count = [](const std::string& path) {
    auto entries = sys::list(path);
    return entries ? entries->size() : size_t(0);
  };
  auto mounts = [] {
    const std::string text = MUST(sys::read_file("/proc/self/mountinfo"));
    auto lines = split(text, '\n');
    return std::set<std::string>(lines.begin(), lines.end());
  };
  ASSERT_OK(runtime().start_container("pod", fixture_->shell("first-0", "true")));  // loads libraries that stay loaded
  EXPECT_EQ(wait("first-0"), 0);
  const size_t fds = count("/proc/self/fd");
  // Other tests mount at the same time, so a round without a new mount is awaited: if something of ours stayed, there would be
  // none.
  const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  std::vector<std::string> added{"not looked at"};
  while (!added.empty() && std::chrono::steady_clock::now() < until) {
    const std::set<std::string> before = mounts();
    for (int i = 0; i < 5; ++i) {
      SandboxSpec spec;
      spec.id = "brief-" + std::to_string(i);
      spec.cgroup_class = "besteffort";
      ASSERT_OK(runtime().create_sandbox(spec));
      ASSERT_OK(runtime().start_container(spec.id, fixture_->shell("app-0", "sleep 1000")));
      ExecSpec look;
      look.args = {"/bin/true"};
      auto exec = runtime().exec(spec.id, "app-0", look);
      ASSERT_TRUE(exec.ok());
      EXPECT_EQ((*exec)->wait({}).value_or(-1), 0);
      exec->reset();
      int pid = runtime().sandbox(spec.id)->pid;
      ASSERT_OK(runtime().remove_sandbox(spec.id));
      EXPECT_NE(::kill(pid, 0), 0);  // not even a zombie is left
    }
    added.clear();
    std::ranges::set_difference(mounts(), before, std::back_inserter(added));
    for (const std::string& line : added) ASSERT_EQ(line.find(fixture_->path()), line.npos) << line;
  }
  EXPECT_TRUE(added.empty()) << added.front();
  // The notification thread may hold the last sandbox for a moment.
  for (int i = 0; i < 60'000 && count("/proc/self/fd") != fds; ++i) ::usleep(1000);
  EXPECT_EQ(count("/proc/self/fd"), fds);
  EXPECT_EQ(count(fixture_->config.state_dir + "/sandboxes"), 1u);
  EXPECT_EQ(count(fixture_->config.run_dir), 1u);
  auto cgroups = MUST(sys::list(fixture_->config.cgroup_root + "/besteffort"));
  for (auto& entry : cgroups) EXPECT_NE(entry.type, 4) << entry.name;
}

TEST_F(LifeLive, opens_a_hundred_pods_at_once) {
  constexpr int kPods = 100;
  for (int i = 0; i < kPods; ++i) {
    SandboxSpec spec;
    spec.id = "many-" + std::to_string(i);
    ASSERT_OK(runtime().create_sandbox(spec));
    ContainerSpec quiet = fixture_->program("app-" + std::to_string(i), {"/bin/sleep", "1000"});
    ASSERT_OK(runtime().start_container(spec.id, quiet));
  }
  size_t pss_kib = 0;
  for (int i = 0; i < kPods; ++i) {
    int pid = runtime().sandbox("many-" + std::to_string(i))->pid;
    auto smaps = MUST(sys::read_file("/proc/" + std::to_string(pid) + "/smaps_rollup"));
    for (std::string_view line : split(smaps, '\n'))
      if (line.starts_with("Pss:")) pss_kib += parse_number<size_t>(trim(line.substr(4, line.size() - 6))).value_or(100000);
  }
  std::printf("coracle-pause: %.1f KiB PSS per pod\n", double(pss_kib) / kPods);
  EXPECT_LT(pss_kib, size_t(kPods) * 102);
  fixture_->runtime.reset();
  auto begin = std::chrono::steady_clock::now();
  auto worked = processor_time_of_process();
  ASSERT_OK(fixture_->open());
  worked = processor_time_of_process() - worked;
  auto took = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin);
  std::printf("opened %d pods in %d ms\n", kPods, int(took.count()));
  auto all = runtime().sandboxes();
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(all->size(), size_t(kPods) + 1);
  for (auto& sandbox : *all) EXPECT_TRUE(sandbox.alive);
  EXPECT_LT(worked, std::chrono::seconds(2)) << "the benchmark has the real limit";
  EXPECT_LT(took.count(), 20'000) << "one does not wait for another, even on a busy machine";
  for (auto& sandbox : *all) ASSERT_OK(runtime().remove_sandbox(sandbox.id));
}

}  // namespace
}  // namespace coracle::runtime

// SPDX-License-Identifier: Apache-2.0
// The fixture of all attacks: a runtime with a hostile root file system, and a directory of the host that no attack may reach.
// Both callers of the runtime can be attacked: the daemon (LocalRuntime) and the command line (coracle-oci). After each test, the
// directory is compared with its initial state; a successful attack changes it or reads its secret.
#pragma once

#include <dirent.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <thread>

#include "runtime/oci/parse.h"
#include "tests/runtime/container/live_runtime.h"
#include "tests/runtime/expect.h"

#ifndef CORACLE_OCI
#error "CORACLE_OCI names the command line under test"
#endif

namespace coracle::attacks {

namespace fs = std::filesystem;
using runtime::ContainerSpec;
using runtime::ExecSpec;
using runtime::LiveRuntime;
using runtime::SandboxSpec;

struct Outcome {
  std::string refusal;  // why it was not started; "" = it was
  std::string out;      // all its output, including that of the command line
  int code = -1;
};

// own_users: the daemon, with a pod in its own user namespace.
enum class Caller { daemon, command_line, own_users };
constexpr uint32_t kOwnUsers = 1 << 20;  // the host's uid of such a pod's root

inline std::string name_of(const testing::TestParamInfo<Caller>& info) {
  return info.param == Caller::daemon ? "daemon" : info.param == Caller::own_users ? "own_users" : "command_line";
}

inline std::string read_text(const std::string& path) {
  auto text = sys::read_file(path);
  return text ? *text : "";
}
inline void write_text(const std::string& path, const std::string& text, mode_t mode = 0644) {
  MUST(sys::replace_file(path, text, mode, sys::Durability::volatile_));
}

// One line per object: type, mode, owner, device, size, content. Times are omitted, since reading changes them.
inline std::string tree_of(const std::string& path) {
  std::map<std::string, std::string> lines;
  for (const auto& entry : fs::recursive_directory_iterator(path)) {
    struct stat info {};
    if (::lstat(entry.path().c_str(), &info) != 0) continue;
    std::string line = std::to_string(info.st_mode) + " " + std::to_string(info.st_uid) + ":" + std::to_string(info.st_gid) +
                       " " + std::to_string(info.st_rdev);
    if (S_ISREG(info.st_mode)) {
      std::string text = read_text(entry.path());
      line += " " + std::to_string(text.size()) + " " + std::to_string(std::hash<std::string>()(text));
    }
    if (S_ISLNK(info.st_mode)) line += " " + fs::read_symlink(entry.path()).string();
    lines[fs::relative(entry.path(), path)] = line;
  }
  std::string out;
  for (const auto& [name, line] : lines) out += name + " " + line + "\n";
  return out;
}

// A hostile process: exchanges two names repeatedly until it is destroyed.
class Exchanger {
 public:
  // Returns when they were exchanged once.
  Exchanger(std::string one, std::string two) : one_(std::move(one)), two_(std::move(two)), thread_([this] { run(); }) {
    for (int i = 0; i < 60'000 && count_ == 0; ++i) ::usleep(1000);
  }
  ~Exchanger() {
    stop_ = true;
    thread_.join();
    EXPECT_GT(count_, 0u) << "nothing was ever exchanged";
  }
  size_t count() const { return count_; }

 private:
  void run() {
    while (!stop_) {
      constexpr unsigned kExchange = 1 << 1;
      if (::renameat2(AT_FDCWD, one_.c_str(), AT_FDCWD, two_.c_str(), kExchange) == 0) ++count_;
      std::this_thread::yield();
    }
  }
  std::string one_, two_;
  std::atomic<bool> stop_{false};
  std::atomic<size_t> count_{0};
  std::thread thread_;
};

class Attack : public testing::TestWithParam<Caller> {
 protected:
  void SetUp() override {
    if (std::string why = LiveRuntime::missing(); !why.empty()) GTEST_SKIP() << why;
    fixture_ = std::make_unique<LiveRuntime>();
    ASSERT_OK(fixture_->open());
    if (is_pod()) {
      SandboxSpec spec;
      spec.id = "pod";
      if (GetParam() == Caller::own_users) spec.uid_mappings = spec.gid_mappings = {{0, kOwnUsers, 65536}};
      ASSERT_OK(fixture_->runtime->create_sandbox(spec));
    }
    MUST(sys::make_directories(host() + "/etc"));
    write_text(host() + "/secret", "the host's secret\n", 0600);
    fs::copy_file(rootfs() + "/bin/busybox", host() + "/echo");  // a program of the host that prints its arguments
    before_ = tree_of(host());
  }
  void TearDown() override {
    if (!fixture_) return;
    EXPECT_EQ(tree_of(host()), before_) << "the host was touched";
    const std::string mounts = read_text("/proc/self/mountinfo");
    for (std::string_view line : split(mounts, '\n'))
      EXPECT_EQ(line.find(fixture_->path()), line.npos) << "mounted on the host: " << line;
  }

  static bool is_pod() { return GetParam() != Caller::command_line; }
  runtime::Runtime& runtime() { return *fixture_->runtime; }
  std::string host() const { return fixture_->path() + "/host"; }  // no attack may change it
  std::string rootfs() const { return fixture_->rootfs(); }        // under the attacker's control
  // The host directory as a link in the image would name it: absolute, or with "..".
  std::string climb() const { return "../../../../../../../.." + host(); }

  // The number of attempts at a race; the command line is slower.
  static int tries(int count) { return is_pod() ? count : count / 4; }

  ContainerSpec shell(const std::string& command) { return fixture_->shell("app-0", command); }
  static void bind(ContainerSpec& spec, const std::string& source, const std::string& destination,
                   std::vector<std::string> options = {"rbind"}) {
    oci::Mount mount;
    mount.type = "bind";
    mount.source = source;
    mount.destination = destination;
    mount.options = std::move(options);
    spec.spec.mounts.push_back(std::move(mount));
  }
  static void tmpfs(ContainerSpec& spec, const std::string& destination) {
    oci::Mount mount;
    mount.type = "tmpfs";
    mount.source = "tmpfs";
    mount.destination = destination;
    spec.spec.mounts.push_back(std::move(mount));
  }
  static void drop_mount(ContainerSpec& spec, const std::string& destination) {
    std::erase_if(spec.spec.mounts, [&](const oci::Mount& mount) { return mount.destination == destination; });
  }

  // Runs the container to its end, with the caller of this test.
  Outcome run(const ContainerSpec& spec) { return is_pod() ? run_by_daemon(spec) : run_by_command_line(spec); }
  // Starts the container and leaves it running, as "app-0" with both callers.
  Outcome start(const ContainerSpec& spec) {
    if (is_pod()) {
      auto started = runtime().start_container("pod", spec);
      return {started ? "" : started.error().text(), "", 0};
    }
    Outcome out = oci({"run", "-d", "--bundle", write_bundle(spec), "app-0"});
    if (out.code != 0) out.refusal = out.out.empty() ? "refused" : out.out;
    return out;
  }
  void stop() {
    if (is_pod()) {
      (void)runtime().kill_container("pod", "app-0");
      (void)fixture_->wait_end("pod", "app-0");
      EXPECT_TRUE(runtime().remove_container("pod", "app-0").ok());
    } else {
      oci({"delete", "--force", "app-0"});
    }
  }
  Outcome exec(const std::vector<std::string>& args, const std::string& cwd = "") {
    if (GetParam() == Caller::command_line) {
      std::vector<std::string> line = {"exec"};
      if (!cwd.empty()) line.insert(line.end(), {"--cwd", cwd});
      line.push_back("app-0");
      line.insert(line.end(), args.begin(), args.end());
      Outcome out = oci(line);
      if (out.out.starts_with("coracle-oci: ")) out.refusal = out.out;
      return out;
    }
    ExecSpec spec;
    spec.args = args;
    spec.cwd = cwd;
    auto made = runtime().exec("pod", "app-0", spec);
    if (!made) return {made.error().text(), "", -1};
    Outcome out;
    Fd ends[] = {(*made)->take_stdout(), (*made)->take_stderr()};
    for (const Fd& end : ends)
      if (auto text = sys::read_all(end)) out.out += *text;
    out.code = (*made)->wait({}).value_or(-1);
    return out;
  }
  // The pid of "app-0" in the host's namespace.
  int pid() {
    if (is_pod()) {
      auto state = runtime().sandbox("pod");
      if (state)
        for (auto& container : state->containers)
          if (container.id == "app-0") return container.pid;
      return 0;
    }
    auto state = parse_json(oci({"state", "app-0"}).out);
    return state ? int(get_int(*state, "pid")) : 0;
  }

  // Runs coracle-oci and collects its output. Each call has its own file: a detached container keeps that of its start, so its
  // later output does not mix with other commands.
  Outcome oci(std::vector<std::string> args) {
    std::string root = fixture_->path() + "/oci", log = fixture_->path() + "/oci." + std::to_string(++calls_) + ".out";
    args.insert(args.begin(), {CORACLE_OCI, "--root", root});
    pid_t child = ::fork();
    if (child == 0) {
      int null = ::open("/dev/null", O_RDONLY), out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      ::dup2(null, 0);
      ::dup2(out, 1);
      ::dup2(out, 2);
      std::vector<char*> argv;
      for (std::string& arg : args) argv.push_back(arg.data());
      argv.push_back(nullptr);
      ::execv(argv[0], argv.data());
      ::_exit(127);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    Outcome out;
    out.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    out.out = read_text(log);
    return out;
  }

  // Writes a bundle as engines do: with every namespace.
  std::string write_bundle(const ContainerSpec& spec) {
    std::string bundle = fixture_->path() + "/bundle";
    MUST(sys::make_directories(bundle));
    oci::Spec config = spec.spec;
    if (config.linux_.namespaces.empty())
      for (const char* type : {"pid", "network", "ipc", "uts", "mount", "cgroup"}) config.linux_.namespaces.push_back({type, ""});
    write_text(bundle + "/config.json", to_text(oci::to_json(config)));
    return bundle;
  }

  std::unique_ptr<LiveRuntime> fixture_;

 private:
  Outcome run_by_daemon(const ContainerSpec& spec) {
    Outcome out;
    (void)sys::unlink(spec.log.path);
    auto started = runtime().start_container("pod", spec);
    if (!started) {
      out.refusal = started.error().text();
      return out;
    }
    auto exit = fixture_->wait_end("pod", spec.id);
    out.code = exit ? exit->exit_code : -1;
    out.out = fixture_->output(spec.id) + fixture_->output(spec.id, "stderr");
    EXPECT_TRUE(runtime().remove_container("pod", spec.id).ok());
    return out;
  }
  Outcome run_by_command_line(const ContainerSpec& spec) {
    Outcome out = oci({"run", "--bundle", write_bundle(spec), "app-0"});
    if (out.out.starts_with("coracle-oci: ")) out.refusal = out.out;
    oci({"delete", "--force", "app-0"});
    return out;
  }
  std::string before_;
  int calls_ = 0;
};

}  // namespace coracle::attacks

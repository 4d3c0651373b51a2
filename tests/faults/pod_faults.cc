// SPDX-License-Identifier: Apache-2.0
// Each system call of coracle-pause and of the processes that it starts fails once, while the daemon's own library drives a pod's
// life cycle. Then the step fails with a message that names the stage, or succeeds because the call does not matter (harmless.h);
// the sandbox can be removed and created again, and nothing is left behind. The driver is a separate process of this same
// program.
//   pod_faults INMATE               by default a part of the calls, the same in each run; all with CORACLE_LONG=1
//   pod_faults drive PATH [users]   the examined process: prints "STEP<tab>ok" or "STEP<tab>error<tab>TEXT"; "users": for a pod
//                                   with a user namespace
//   CORACLE_FAULTS_LOG, CORACLE_FAULTS_ONLY: as for oci_faults
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "tests/faults/calls.h"
#include "tests/faults/harmless.h"
#include "tests/faults/trial.h"
#include "tests/runtime/container/live_runtime.h"

namespace coracle::faults {
namespace {

namespace fs = std::filesystem;
using runtime::LiveRuntime;

constexpr const char* kLast = "that is all";
constexpr const char* kDirectory = "/data";  // where the processes begin: none of the launch's own steps goes there

// ---- the examined process ----

class Driver {
 public:
  Driver(const std::string& path, bool has_users) : fixture_(path), has_users_(has_users) {}

  int drive() {
    if (auto opened = fixture_.open(); !opened) return say("open", opened), 1;
    runtime::SandboxSpec pod;
    pod.id = "pod";
    pod.hostname = "faults";
    pod.sysctl = {{"net.ipv4.ip_forward", "1"}};
    if (has_users_) pod.uid_mappings = pod.gid_mappings = {{0, 524288, 65536}};
    const bool good = say("create_sandbox", runtime().create_sandbox(pod)) && say("start", start()) && say("exec", exec(false)) &&
                      say("terminal", exec(true)) && say("job", job()) && say("kill", kill()) &&
                      say("remove_container", runtime().remove_container("pod", "app-0"));
    say("remove", runtime().remove_sandbox("pod"));
    if (!good) {
      say("again", runtime().create_sandbox(pod));
      say("remove again", runtime().remove_sandbox("pod"));
    }
    std::printf("done\n");
    return 0;
  }

 private:
  runtime::Runtime& runtime() { return *fixture_.runtime; }

  static bool say(const char* step, const Result<void>& result) {
    if (result) std::printf("%s\tok\n", step);
    else std::printf("%s\terror\t%s\n", step, result.error().text().c_str());
    std::fflush(stdout);
    return result.ok();
  }

  Result<void> start() {
    runtime::ContainerSpec app = fixture_.program("app-0", {"/inmate", "stay"});
    app.spec.process.cwd = kDirectory;
    app.spec.process.user.uid = 1000;
    app.spec.process.user.gid = 1001;
    app.spec.process.user.additional_gids = {5, 6};
    app.spec.mounts.push_back({kDirectory, "bind", fixture_.path() + "/data", {"rbind", "ro"}, {}, {}, {}});
    TRY(runtime().start_container("pod", app));
    for (int i = 0; i < 5000 && fixture_.output("app-0").find(kLast) == std::string::npos; ++i) ::usleep(1000);
    std::ofstream(fixture_.path() + "/own/app") << fixture_.output("app-0");
    return {};
  }

  Result<void> exec(bool has_terminal) {
    runtime::ExecSpec spec;
    spec.args = {"/inmate", "say"};
    spec.terminal = has_terminal;
    auto exec = TRY(runtime().exec("pod", "app-0", spec));
    Fd out = exec->take_stdout();
    std::string said;
    char buffer[4096];
    for (ssize_t n; (n = ::read(out.get(), buffer, sizeof buffer)) > 0;) said.append(buffer, size_t(n));
    std::ofstream(fixture_.path() + (has_terminal ? "/own/terminal" : "/own/exec")) << said;
    int code = TRY(exec->wait({}));
    if (code != kSaidByExec) return Error(Code::internal, "the process ended with exit code " + std::to_string(code));
    return {};
  }

  Result<void> job() {
    runtime::ContainerSpec job = fixture_.program("job-0", {"/inmate", "say"});
    job.spec.process.cwd = kDirectory;
    TRY(runtime().start_container("pod", job));
    int code = TRY(wait_end("job-0"));
    if (code != kSaidByExec) return Error(Code::internal, "the job ended with exit code " + std::to_string(code));
    if (fixture_.output("job-0").find(kLast) == std::string::npos) return Error(Code::internal, "the job's log is not whole");
    return {};
  }

  Result<void> kill() {
    TRY(runtime().kill_container("pod", "app-0"));
    TRY(wait_end("app-0"));
    return {};
  }

  Result<int> wait_end(const std::string& id) {
    for (int i = 0; i < 10000; ++i, ::usleep(1000)) {
      auto state = TRY(runtime().sandbox("pod"));
      if (!state.alive) return Error(Code::conflict, "the sandbox has ended");
      for (const auto& each : state.containers)
        if (each.id == id && each.exit) return each.exit->exit_code;
    }
    return Error(Code::timeout, id + " has not ended");
  }

  LiveRuntime fixture_;
  bool has_users_;
};

// ---- examination ----

class Examination {
 public:
  Examination(const std::string& self, Tracer& tracer, Verdict& verdict, const std::string& inmate, bool has_users)
      : driver_{self, "drive", fixture_.path()}, tracer_(tracer), verdict_(verdict) {
    if (has_users) driver_.push_back("users");
    fs::copy_file(inmate, fixture_.rootfs() + "/inmate");
    fs::create_directory(fixture_.rootfs() + kDirectory);
    fs::create_directory(fixture_.path() + "/data");
    const std::string& root = fixture_.config.cgroup_root;
    places_ = {fixture_.path(), fixture_.path() + "/own", root.substr(root.rfind('/') + 1)};
  }

  bool learn() {
    for (bool is_recorded : {false, true}) {
      freshen();
      if (is_recorded) before_ = look_settled(tracer_, [&] { return look(); });
      tracer_.forget();
      tracer_.record();
      Outcome outcome = run();
      std::string said = slurp(out());
      if (outcome.exit_code != 0 || said.find("\terror\t") != said.npos) {
        verdict_.say(false, "a good run: " + said + slurp(err()));
        return false;
      }
      for (const char* each : {"app", "exec", "terminal"}) want_[each] = output_of_step(each);
    }
    std::string left = left_behind();
    verdict_.say(left.empty(), "a good run leaves nothing " + left);
    calls_ = tracer_.calls();
    return left.empty();
  }

  void try_all(const Wanted& wanted) {
    try_each(
        calls_, wanted, verdict_, [&](const Fault& fault) { return try_one(fault); }, [&] { clear(); });
  }

 private:
  Trial try_one(const Fault& fault) {
    Trial out;
    out.fault = fault;
    freshen();
    tracer_.forget();
    tracer_.arm(fault);
    Outcome outcome = run();
    out.is_reached = tracer_.has_struck();
    if (out.is_reached) out.fault.call.detail = tracer_.struck().detail;
    out.problem = judge(outcome, out);
    if (out.problem.empty())
      if (std::string left = left_behind(); !left.empty()) out.problem = "something stays: " + left;
    return out;
  }

  std::string judge(const Outcome& outcome, Trial& out) {
    const std::string said = slurp(this->out());
    if (outcome.hung) return "it hangs after: " + said;
    if (outcome.signal) return "the daemon's part is killed by signal " + std::to_string(outcome.signal) + " after: " + said;
    if (said.find("done\n") == said.npos) return "the driver ends early: " + said + slurp(err());
    std::istringstream lines(said);
    for (std::string line; std::getline(lines, line);) {
      size_t tab = line.find("\terror\t");
      if (tab == line.npos) continue;
      std::string step = line.substr(0, tab), text = line.substr(tab + 7);
      if (!out.is_reached) return step + " fails, and the call was not made: " + text;
      if (step.starts_with("remove") && step != "remove_container") return "the sandbox cannot be removed: " + text;
      if (step == "again") return "the sandbox cannot be made again: " + text;
      out.has_failed = true;
      out.said = step + ": " + text;
      if (std::string wrong = wrong_with_line(text + "\n", out.fault.error); !wrong.empty()) return wrong;
    }
    if (out.has_failed || !out.is_reached) return "";
    if (fault_is_of_log(out.fault.call)) return "";  // only log lines are missing
    for (const auto& [name, want] : want_)
      if (output_of_step(name) != want)
        return "all succeeds, and " + name + " is another: " + first_difference(want, output_of_step(name));
    return "";
  }

  static bool fault_is_of_log(const Call& call) {
    return call.detail.find(".log") != std::string::npos && name_of_call(call.number).starts_with("write");
  }

  Outcome run() {
    Command command;
    command.name = "daemon";
    command.argv = driver_;
    command.out = out();
    command.err = err();
    command.counts_itself = false;
    command.timeout = std::chrono::seconds(40);
    return tracer_.run(command);
  }

  std::string output_of_step(const std::string& name) const {
    std::string said = slurp(fixture_.path() + "/own/" + name);
    for (size_t at; (at = said.find("\r\n")) != said.npos;) said.erase(at, 1);  // as from a terminal
    return lines_in(said, name == "app" ? "" : slurp(fixture_.path() + "/own/app"));
  }

  Machine look() const {
    return without_files(faults::look(places_), [](const fs::path& path) {
      return is_seccomp_cache(path, "seccomp") || path.native().find(".log") != std::string::npos;
    });
  }
  std::string left_behind() {
    return what_stays(tracer_, before_, [&] { return look(); });
  }
  void freshen() const {
    std::error_code wrong;
    fs::remove_all(fixture_.path() + "/own", wrong);
    fs::create_directory(fixture_.path() + "/own");
    for (const char* each : {"app-0", "job-0"}) fs::remove(fixture_.path() + "/" + each + ".log", wrong);
  }
  void clear() {
    ::kill(-1, SIGKILL);  // this is the first process of a pid namespace
    (void)tracer_.wait_until([] { return false; }, std::chrono::milliseconds(100));
    remove_cgroups(fixture_.config.cgroup_root);
    std::error_code wrong;
    fs::remove_all(fixture_.path() + "/state", wrong);
    fs::remove_all(fixture_.path() + "/run", wrong);
    freshen();
    (void)tracer_.run({"clean", driver_, out(), err(), std::chrono::seconds(40), false, false});
  }
  std::string out() const { return fixture_.path() + "/own/driver.out"; }
  std::string err() const { return fixture_.path() + "/own/driver.err"; }

  LiveRuntime fixture_;
  std::vector<std::string> driver_;  // its command line
  Tracer& tracer_;
  Verdict& verdict_;
  Places places_;
  Machine before_;
  std::vector<Call> calls_;
  std::map<std::string, std::string> want_;
};

int examine(char** argv) {
  if (std::string why = LiveRuntime::missing(); !why.empty()) {
    std::printf("ok 1 - faults # SKIP %s\n", why.c_str());
    return 77;
  }
  const std::string self = fs::canonical("/proc/self/exe");
  enter_own_machine();
  const Wanted wanted = Wanted::from_environment();
  Tracer tracer({"inmate"});
  int status = 0;
  for (bool has_users : {false, true}) {
    Verdict verdict(has_users ? "coracle-pause, users" : "coracle-pause", kHarmlessOfPods,
                    wanted.log_of(has_users ? "users" : "pods"));
    Examination examination(self, tracer, verdict, argv[1], has_users);
    if (examination.learn()) examination.try_all(wanted);
    status |= verdict.finish();
  }
  return status;
}

}  // namespace
}  // namespace coracle::faults

int main(int argc, char** argv) {
  const bool drives = argc >= 3 && std::string(argv[1]) == "drive", has_users = argc == 4 && std::string(argv[3]) == "users";
  if (drives && (argc == 3 || has_users)) return coracle::faults::Driver(argv[2], has_users).drive();
  if (argc == 2) return coracle::faults::examine(argv);
  std::fprintf(stderr, "usage: %s INMATE\n", argv[0]);
  return 2;
}

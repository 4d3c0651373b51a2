// SPDX-License-Identifier: Apache-2.0
// Each system call of coracle-oci's commands and of the containers' first processes fails once. Then the command fails with a
// message that names the step, or succeeds because the call does not matter (harmless.h has the reason) and the container is as
// requested; nothing is left behind. By default a part of the calls, the same in each run; all with CORACLE_LONG=1.
//   oci_faults CORACLE_OCI INMATE [SCENARIO…]
//   CORACLE_FAULTS_LOG   a file for every trial     CORACLE_FAULTS_ONLY   "PROCESS CALL", patterns: only these
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>

#include "runtime/base/fd.h"
#include "runtime/oci/defaults.h"
#include "runtime/oci/parse.h"
#include "tests/faults/calls.h"
#include "tests/faults/harmless.h"
#include "tests/faults/trial.h"

namespace coracle::faults {
namespace {

namespace fs = std::filesystem;

constexpr auto kSoon = std::chrono::seconds(5);

struct Scenario {
  std::string name;
  std::function<void(oci::Spec&)> shape;
};

// Receives the containers' terminals, as an engine does: a socket, and the output of the terminals.
class Console {
 public:
  void open(const std::string& path) {
    ::unlink(path.c_str());
    sockaddr_un address{AF_UNIX, {}};
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    listener_ = Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) std::abort();
    if (::listen(listener_.get(), 4) != 0) std::abort();
    terminal_.reset();
  }
  // The output since the last call.
  std::string take() {
    if (!listener_) return "";
    Fd connection(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (connection) receive(connection);
    std::string out;
    char buffer[4096];
    for (ssize_t n; terminal_ && (n = ::read(terminal_.get(), buffer, sizeof buffer)) > 0;) out.append(buffer, size_t(n));
    std::erase(out, '\r');
    return out;
  }

 private:
  void receive(const Fd& connection) {
    char name[256];
    iovec part{name, sizeof name};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    if (::recvmsg(connection.get(), &message, MSG_CMSG_CLOEXEC) <= 0) return;  // the connection failed earlier
    if (cmsghdr* head = CMSG_FIRSTHDR(&message)) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(head), sizeof fd);
      ::fcntl(fd, F_SETFL, O_NONBLOCK);
      terminal_ = Fd(fd);
    }
  }
  Fd listener_, terminal_;
};

struct Step {
  std::string name;
  std::vector<std::string> arguments;
  int want = 0;
};

class OciFixture {
 public:
  OciFixture(std::string oci, const std::string& inmate) : oci_(std::move(oci)) {
    char name[] = "/var/tmp/coracle-faults-XXXXXX";
    if (!::mkdtemp(name)) std::abort();
    top_ = name;
    ::chmod(name, 0755);
    token_ = top_.substr(top_.rfind('/') + 1);
    for (const char* each : {"/own", "/state", "/bundle/rootfs", "/data"}) fs::create_directories(top_ + each);
    for (const char* each : {"dev", "proc", "sys", "tmp", "data", "masked", "readonly", "scratch", "copied/more"})
      fs::create_directories(rootfs() + "/" + each);
    std::ofstream(top_ + "/data/file") << "data\n";
    std::ofstream(rootfs() + "/masked/file") << "hidden\n";
    std::ofstream(rootfs() + "/copied/more/file") << "copied\n";
    fs::create_symlink("file", rootfs() + "/copied/more/link");
    for (const char* each : {"inmate", "hook"}) fs::copy_file(inmate, rootfs() + "/" + each);
    fs::copy_file(inmate, top_ + "/hook");
    ::mknod((rootfs() + "/node").c_str(), S_IFCHR | 0666, makedev(1, 11));  // no device rule allows it
    ::chmod((rootfs() + "/node").c_str(), 0666);
    cgroup_ = cgroup2_mount() + "/" + token_;
    fs::create_directory(cgroup_);
    keep_namespaces();
    places_ = {top_, top_ + "/own", token_};
  }
  ~OciFixture() {
    remove_cgroups(cgroup_);
    for (const char* each : kKept) ::umount2(kept(each).c_str(), MNT_DETACH);
    std::error_code wrong;
    fs::remove_all(top_, wrong);
  }

  void write_config(const Scenario& scenario) {
    oci::Spec spec = oci::default_spec();
    spec.root.path = "rootfs";
    spec.process.args = {"/inmate", "stay"};
    spec.process.env = {"PATH=/bin", "COLOR=green"};
    spec.process.cwd = "/tmp";
    spec.hostname = "faults";
    spec.linux_.namespaces.clear();
    for (const char* each : {"mount", "pid", "network", "ipc", "uts", "cgroup"}) spec.linux_.namespaces.push_back({each, ""});
    spec.linux_.cgroups_path = "/" + token_ + "/box";
    spec.linux_.seccomp = oci::default_seccomp();
    spec.linux_.masked_paths.push_back("/masked");
    spec.linux_.readonly_paths.push_back("/readonly");
    scenario.shape(spec);
    has_terminal_ = spec.process.terminal;
    std::ofstream(top_ + "/bundle/config.json") << to_text(oci::to_json(spec));
  }

  std::vector<Step> steps() const {
    Step create{"create", {"create", "--bundle", top_ + "/bundle", "--pid-file", pid_file(), "box"}};
    if (has_terminal_) create.arguments.insert(create.arguments.end() - 1, {"--console-socket", console_path()});
    return {create,
            {"state", {"state", "box"}},
            {"start", {"start", "box"}},
            {"exec", {"exec", "--env", "WHO=there", "box", "/inmate", "say"}, kSaidByExec},
            {"list", {"list"}},
            {"ps", {"ps", "--format", "json", "box"}},
            {"pause", {"pause", "box"}},
            {"resume", {"resume", "box"}},
            {"kill", {"kill", "box", "KILL"}},
            {"delete", {"delete", "box"}}};
  }
  Step force() const { return {"force", {"delete", "--force", "box"}}; }

  Outcome run(Tracer& tracer, const Step& step, bool is_traced) const {
    Command command;
    command.name = step.name;
    command.argv = {oci_, "--root", top_ + "/state"};
    command.argv.insert(command.argv.end(), step.arguments.begin(), step.arguments.end());
    command.out = out_of(step.name);
    command.err = err_of(step.name);
    command.is_traced = is_traced;
    return tracer.run(command);
  }
  // The container's output continues in the file of the command that created it.
  std::string out_of(const std::string& step) const { return top_ + "/own/" + step + ".out"; }
  std::string err_of(const std::string& step) const { return top_ + "/own/" + step + ".err"; }
  std::string pid_file() const { return top_ + "/bundle/pid"; }
  std::string rootfs() const { return top_ + "/bundle/rootfs"; }
  const std::string& top() const { return top_; }
  // Namespaces beside the machine's own, as files, for containers that join one: "net", "ipc", "uts".
  static constexpr const char* kKept[] = {"net", "ipc", "uts"};
  std::string kept(const std::string& type) const { return top_ + "/kept-" + type; }
  const std::string& token() const { return token_; }
  Machine look() const { return faults::look(places_); }
  std::string console_path() const { return top_ + "/own/console.sock"; }
  // The terminal's output is written to the same file as other containers' output.
  void read_terminal() {
    if (std::string said = console_.take(); !said.empty()) std::ofstream(out_of("create"), std::ios::app) << said;
  }

  // Restores the state before a first run: everything that is created once and kept is created again.
  void freshen() {
    std::error_code wrong;
    fs::remove_all(top_ + "/state/.seccomp", wrong);
    fs::remove_all(top_ + "/own", wrong);
    fs::remove(pid_file(), wrong);
    fs::create_directory(top_ + "/own");
    if (has_terminal_) console_.open(console_path());
  }
  // Cleans up after a trial that left something behind.
  void clear(Tracer& tracer) const {
    (void)run(tracer, force(), false);
    ::kill(-1, SIGKILL);  // this is the first process of a pid namespace
    (void)tracer.wait_until([] { return false; }, std::chrono::milliseconds(50));
    remove_cgroups(cgroup_);
    std::error_code wrong;
    fs::create_directory(cgroup_, wrong);
    fs::remove_all(top_ + "/state", wrong);
    fs::create_directory(top_ + "/state");
  }

 private:
  void keep_namespaces() const {
    const int child = ::fork();
    if (child < 0) std::abort();
    if (child == 0) {
      bool is_kept = ::unshare(CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS) == 0;
      // Visible to all processes in this mount namespace.
      for (const char* each : kKept) {
        std::ofstream(kept(each)).flush();
        is_kept = is_kept &&
                  ::mount(("/proc/self/ns/" + std::string(each)).c_str(), kept(each).c_str(), nullptr, MS_BIND, nullptr) == 0;
      }
      ::_exit(is_kept ? 0 : 1);
    }
    int status = 0;
    if (::waitpid(child, &status, 0) != child || status != 0) std::abort();
  }

  std::string oci_, top_, token_, cgroup_;
  Places places_;
  Console console_;
  bool has_terminal_ = false;
};

class Examination {
 public:
  Examination(OciFixture& fixture, Tracer& tracer, const Scenario& scenario, Verdict& verdict)
      : fixture_(fixture), tracer_(tracer), scenario_(scenario), verdict_(verdict) {}

  // A successful run that records the calls and the container's properties.
  bool learn() {
    fixture_.write_config(scenario_);
    for (bool is_recorded : {false, true}) {  // the first run creates what is created once
      fixture_.freshen();
      tracer_.forget();
      tracer_.record();
      if (!is_recorded) before_.clear();
      if (is_recorded) before_ = look_settled(tracer_, [&] { return look_without_what_is_kept(); });
      for (const Step& step : fixture_.steps()) {
        Outcome outcome = fixture_.run(tracer_, step, true);
        if (outcome.exit_code == step.want && !outcome.hung) wait_after(step);
        else return told(step, outcome);
      }
      want_create_ = output_of_step("create");
      want_exec_ = output_of_step("exec");
      if (want_create_.find("that is all") == std::string::npos || want_exec_.find("that is all") == std::string::npos) {
        verdict_.say(false, scenario_.name + ": the container says how it looks: " + slurp(fixture_.err_of("create")));
        return false;
      }
    }
    std::string left = left_behind();
    verdict_.say(left.empty(), scenario_.name + ": a good run leaves nothing " + left);
    calls_ = tracer_.calls();
    return left.empty();
  }

  void try_all(const Wanted& wanted) {
    try_each(
        calls_, wanted, verdict_, [&](const Fault& fault) { return try_one(fault); }, [&] { fixture_.clear(tracer_); });
  }

 private:
  Trial try_one(const Fault& fault) {
    Trial out;
    out.fault = fault;
    fixture_.freshen();
    tracer_.forget();
    tracer_.arm(fault);
    for (const Step& step : fixture_.steps()) {
      Outcome outcome = fixture_.run(tracer_, step, true);
      const bool good = outcome.exit_code == step.want && !outcome.hung;
      const bool struck = tracer_.has_struck();
      if (struck) out.fault.call.detail = tracer_.struck().detail;
      if (good && struck) out.problem = check(step);
      // The container's process was created, waited, and then died: "stopped" is true, and start reports why it fails.
      const bool is_of_container = fault.call.process.starts_with("create.") && (step.name == "create" || step.name == "state");
      if (!out.problem.empty() && is_of_container && status_now() == "stopped") out.problem.clear();
      if (!out.problem.empty()) return out;
      if (good) {
        wait_after(step);
        continue;
      }
      out.said = slurp(fixture_.err_of(step.name));
      if (!struck) {
        out.problem = step.name + " fails before the call is made: " + out.said;
        return out;
      }
      out.has_failed = true;
      if (outcome.hung) out.problem = step.name + " hangs; " + out.said;
      else if (fault.call.is_startup) out.problem = "";  // any message of the loader, or its death, is acceptable
      else if (outcome.signal)
        out.problem = step.name + " is killed by signal " + std::to_string(outcome.signal) + "; " + out.said;
      else out.problem = wrong_with_line(out.said, fault.error);
      // The C library aborts halfway, for example if its first allocation fails: then a command is like a killed one, and the
      // next command removes what it left.
      const bool was_cut_off = step.name == "create" && fault.call.is_startup && outcome.signal;
      if (was_cut_off) (void)fixture_.run(tracer_, fixture_.force(), false);
      if (out.problem.empty()) out.problem = after_failure(step);
      return out;
    }
    out.is_reached = tracer_.has_struck();
    std::string left = left_behind();
    if (!left.empty()) out.problem = "all commands succeed, and something stays: " + left;
    return out;
  }

  // After a failed command: the remaining state, and that it can be removed.
  std::string after_failure(const Step& step) {
    if (step.name == "create") {
      if (std::string left = left_behind(); !left.empty())
        return "create fails and something stays: " + left + "; " + slurp(fixture_.err_of("create"));
      Outcome again = fixture_.run(tracer_, fixture_.steps()[0], false);
      if (again.exit_code != 0) return "create cannot be done again: " + slurp(fixture_.err_of("create"));
    } else if (step.name != "start" && step.name != "kill" && step.name != "delete") {
      std::string status = status_now();
      const bool is_right =
          step.name == "state" ? status == "created" : status == "running" || (step.name == "resume" && status == "paused");
      if (!is_right) return step.name + " fails, and the container is " + status;
    }
    Outcome removed = fixture_.run(tracer_, fixture_.force(), false);
    if (removed.exit_code != 0)
      return "after " + step.name + " has failed, so does delete --force: " + slurp(fixture_.err_of("force"));
    std::string left = left_behind();
    return left.empty() ? "" : step.name + " has failed, and after delete --force something stays: " + left;
  }

  // After a command that succeeded although a call failed: verifies the result.
  std::string check(const Step& step) {
    auto status_is = [&](const char* wanted) {
      std::string now = status_now();
      return now == wanted ? "" : step.name + " succeeds, and the container is " + now;
    };
    // The failure of a later hook is reported and changes nothing. Source: runtime-spec runtime.md "Lifecycle".
    std::string told = slurp(fixture_.err_of(step.name));
    if (!told.empty() && told.find(" poststart hook") == told.npos && told.find(" poststop hook") == told.npos)
      return step.name + " succeeds and complains: " + told;
    if (step.name == "create") {
      if (pid() <= 0) return "create succeeds, and the pid file holds no pid";
      return status_is("created");
    }
    if (step.name == "state")
      return slurp(fixture_.out_of("state")).find("\"status\": \"created\"") == std::string::npos
                 ? "state says something else: " + slurp(fixture_.out_of("state"))
                 : "";
    if (step.name == "start") {
      wait_for_output("create");
      std::string differs = first_difference(want_create_, output_of_step("create"));
      return differs.empty() ? status_is("running") : "start succeeds, and the container is another: " + differs;
    }
    if (step.name == "exec") {
      std::string differs = first_difference(want_exec_, output_of_step("exec"));
      return differs.empty() ? "" : "exec succeeds, and the process is another: " + differs;
    }
    if (step.name == "list")
      return slurp(fixture_.out_of("list")).find("running") == std::string::npos
                 ? "list does not say running: " + slurp(fixture_.out_of("list"))
                 : "";
    if (step.name == "ps") {
      std::string want = "[" + std::to_string(pid()) + "]", said = slurp(fixture_.out_of("ps"));
      return said == want + "\n" ? "" : "ps says " + said + ", not " + want;
    }
    if (step.name == "pause") return status_is("paused");
    if (step.name == "resume") return status_is("running");
    if (step.name == "kill") return has_ended() ? status_is("stopped") : "kill succeeds, and the container lives";
    return status_is("none");
  }

  bool told(const Step& step, const Outcome& outcome) {
    verdict_.say(false, scenario_.name + ": a good run: " + step.name + (outcome.hung ? " hangs" : "") + ": " +
                            slurp(fixture_.err_of(step.name)));
    fixture_.clear(tracer_);
    return false;
  }

  void wait_after(const Step& step) {
    if (step.name == "start") wait_for_output("create");
    if (step.name == "kill") (void)has_ended();
  }
  bool has_ended() {
    const int process = pid();
    return tracer_.wait_until([&] { return process <= 0 || ::kill(process, 0) != 0; }, kSoon);
  }
  void wait_for_output(const std::string& step) {
    auto has_said = [&] {
      fixture_.read_terminal();
      return slurp(fixture_.out_of(step)).find("that is all") != std::string::npos;
    };
    (void)tracer_.wait_until(has_said, kSoon);
  }
  int pid() const { return std::atoi(slurp(fixture_.pid_file()).c_str()); }

  std::string status_now() {
    Outcome outcome = fixture_.run(tracer_, {"now", {"state", "box"}}, false);
    if (outcome.exit_code != 0) return "none";
    std::string text = slurp(fixture_.out_of("now"));
    for (const char* each : {"creating", "created", "running", "paused", "stopped"})
      if (text.find("\"status\": \"" + std::string(each) + "\"") != text.npos) return each;
    return "unknown: " + text;
  }

  std::string output_of_step(const std::string& step) const {
    return lines_in(slurp(fixture_.out_of(step)), step == "create" ? "" : slurp(fixture_.out_of("create")));
  }

  Machine look_without_what_is_kept() const {
    return without_files(fixture_.look(),
                         [&](const fs::path& path) { return is_seccomp_cache(path, ".seccomp") || path == fixture_.pid_file(); });
  }
  std::string left_behind() {
    return what_stays(tracer_, before_, [&] { return look_without_what_is_kept(); });
  }

  OciFixture& fixture_;
  Tracer& tracer_;
  const Scenario& scenario_;
  Verdict& verdict_;
  Machine before_;
  std::vector<Call> calls_;
  std::string want_create_, want_exec_;
};

std::vector<Scenario> scenarios(const OciFixture& fixture) {
  return {{"plain",
           [&](oci::Spec& spec) {
             spec.process.user.uid = 1000;
             spec.process.user.gid = 1001;
             spec.process.user.additional_gids = {5, 6};
             spec.process.rlimits = {{"RLIMIT_NOFILE", 512, 512}};
             spec.process.oom_score_adj = 300;
             spec.process.no_new_privileges = true;
             spec.linux_.sysctl = {{"net.ipv4.ip_forward", "1"}, {"kernel.msgmax", "9000"}};
             spec.mounts.push_back({"/data", "bind", fixture.top() + "/data", {"rbind", "ro", "nosuid"}, {}, {}, {}});
             spec.mounts.push_back({"/scratch", "tmpfs", "tmpfs", {"nosuid", "size=64k"}, {}, {}, {}});
             spec.linux_.devices.push_back({"/dev/more", "c", 1, 3, 0640, 5, 6});
             const std::string outside = fixture.top() + "/hook";
             for (const auto& kind : oci::kHookKinds) {
               const bool is_inside = kind.list == &oci::Hooks::start_container;
               (spec.hooks.*kind.list)
                   .push_back({is_inside ? "/hook" : outside,
                               {"hook", "hook"},
                               std::vector<std::string>{"KIND=" + std::string(kind.name)},
                               10});
             }
           }},
          {"users",
           [&](oci::Spec& spec) {
             spec.linux_.namespaces.push_back({"user", ""});
             spec.linux_.namespaces.push_back({"time", ""});
             spec.linux_.time_offsets = {{"boottime", {1000, 0}}};
             spec.linux_.uid_mappings = spec.linux_.gid_mappings = {{0, 100000, 65536}};
             spec.root.readonly = true;
             spec.mounts.push_back({"/data", "bind", fixture.top() + "/data", {"rbind", "idmap"}, {}, {}, {}});
           }},
          {"terminal",
           [](oci::Spec& spec) {
             spec.process.terminal = true;
             spec.process.console_width = 90;
             spec.process.console_height = 30;
             spec.process.scheduler = oci::Scheduler{"SCHED_BATCH", 3, {}, {}, {}, {}, {}};
             spec.process.io_priority = oci::IoPriority{"IOPRIO_CLASS_BE", 5};
             spec.linux_.personality = oci::Personality{"LINUX", {}};
             spec.mounts.push_back({"/copied", "tmpfs", "tmpfs", {"tmpcopyup"}, {}, {}, {}});
           }},
          {"joined", [&](oci::Spec& spec) {
             spec.hostname.clear();
             for (auto& each : spec.linux_.namespaces)
               for (const char* kept : OciFixture::kKept)
                 if (each.type == (std::string(kept) == "net" ? "network" : kept)) each.path = fixture.kept(kept);
             std::erase_if(spec.linux_.namespaces, [](const oci::Namespace& each) { return each.type == "cgroup"; });
             spec.linux_.namespaces.push_back({"time", ""});
           }}};
}

int examine(int argc, char** argv) {
  if (cgroup2_mount().empty()) {
    std::printf("ok 1 - faults # SKIP needs cgroup v2\n");
    return 77;
  }
  enter_own_machine();
  const Wanted wanted = Wanted::from_environment();
  int status = 0;
  OciFixture fixture(argv[1], argv[2]);
  Tracer tracer({"inmate", "hook"});
  for (const Scenario& scenario : scenarios(fixture)) {
    bool is_wanted = argc <= 3;
    for (int i = 3; i < argc; ++i) is_wanted |= scenario.name == argv[i];
    if (!is_wanted) continue;
    Verdict verdict("coracle-oci, " + scenario.name, kHarmlessOfOci, wanted.log_of(scenario.name));
    Examination examination(fixture, tracer, scenario, verdict);
    if (examination.learn()) examination.try_all(wanted);
    status |= verdict.finish();
  }
  return status;
}

}  // namespace
}  // namespace coracle::faults

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s CORACLE_OCI INMATE [SCENARIO…]\n", argv[0]);
    return 2;
  }
  return coracle::faults::examine(argc, argv);
}

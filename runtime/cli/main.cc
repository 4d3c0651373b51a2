// SPDX-License-Identifier: Apache-2.0
// coracle-oci: the command line of an OCI runtime over the library that the daemon uses. No process of the runtime stays in the
// background: the parent of a container's first process is the caller's process.
//   create ─▶ start ─▶ [exec, pause, resume, update, kill] ─▶ delete
// Source: opencontainers/runtime-spec runtime.md; the commands and flags as runc and crun spell them.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstring>

#include "runtime/base/text.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/launch.h"
#include "runtime/cli/log.h"
#include "runtime/oci/features_document.h"
#include "runtime/sys/process.h"

namespace coracle::cli {
namespace {

using Command = Result<int> (*)(const Options&);

constexpr int kExecFailed = 255;  // of exec: the program may end with 1 itself. Source: runc

class CommandLine {
 public:
  // Only the named command's parser is built, if it is a known one: building all of them would take longer than most commands
  // run.
  CommandLine(int argc, char** argv) : argc_(argc), argv_(argv) {
    app_.require_subcommand(1);
    app_.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);  // as with Go's flags: engines append flags
    app_.set_version_flag("-v,-V,--version", std::string("coracle-oci version " CORACLE_VERSION "\nspec: ") + oci::kVersionMax);
    app_.add_option("--root", options_.root, "where the state of containers is kept");
    app_.add_option("--log", options_.log, "also write warnings and errors to this file, or to syslog:NAME or journald:NAME");
    app_.add_option("--log-format", options_.log_format, "text or json")->check(CLI::IsMember({"text", "json", ""}));
    app_.add_option("--log-level", options_.log_level, "error, warning or debug")
        ->check(CLI::IsMember({"error", "warning", "debug"}));
    app_.add_flag("--debug", options_.debug, "say what is done, as --log-level debug");
    app_.add_flag("--systemd-cgroup", options_.systemd_cgroup,
                  "cgroups are made by systemd: linux.cgroupsPath is slice:prefix:name");
    app_.add_option("--cgroup-manager", options_.cgroup_manager, "cgroupfs, systemd or disabled")
        ->check(CLI::IsMember({"cgroupfs", "systemd", "disabled"}));
    app_.add_option("--rootless", rootless_, "accepted: found out by itself");
    const std::string named = named_command();
    bool is_known = false;
    for (const auto& [name, add] : kCommands) is_known |= name == named;
    for (const auto& [name, add] : kCommands)
      if (!is_known || name == named) (this->*add)();
  }

  int run() {
    if (argc_ == 2 && argv_[1] == std::string_view("__manual")) return print_manual();
    try {
      app_.parse(argc_, argv_);
    } catch (const CLI::ParseError& error) {
      return error.get_exit_code() == 0 ? app_.exit(error) : refuse(error);  // 0: --help, --version
    }
    if (chosen_ == &create || chosen_ == &cli::run) options_.listen_fds = activated_sockets();  // nobody else passes them on
    auto ready = check_descriptors(options_);  // before opening files, which could get these numbers
    if (ready) ready = open_log(options_);
    options_.command = rest_ ? rest_->remaining() : std::vector<std::string>();
    if (!options_.command.empty() && options_.command[0] == "--") options_.command.erase(options_.command.begin());
    auto result = ready ? chosen_(options_) : Result<int>(ready.take_error());
    if (result) return *result;
    say_error(result.error().text());
    return chosen_ == &exec ? kExecFailed : 1;
  }

 private:
  // The first word that is neither an option nor an option's value; "" if there is none.
  std::string named_command() const {
    for (int i = 1; i < argc_; ++i) {
      const std::string word = argv_[i];
      if (!word.starts_with("-")) return word;
      const CLI::Option* option = app_.get_option_no_throw(word);
      if (option && option->get_items_expected_max() > 0) ++i;
    }
    return "";
  }

  // All that --help says, of all commands at once, in lines for a program to read, as coraclectl prints them (ctl/command.h).
  int print_manual() const {
    print_manual_of(app_, app_.get_name());
    for (const CLI::App* command : app_.get_subcommands([](const CLI::App*) { return true; }))
      print_manual_of(*command, app_.get_name() + " " + command->get_name());
    return 0;
  }

  static void print_manual_of(const CLI::App& command, const std::string& path) {
    std::string arguments, flags;
    for (const CLI::Option* option : command.get_options()) {
      const std::string about = " | " + option->get_description() + "\n";
      std::string names;
      for (const auto& name : option->get_snames()) names += ",-" + name;
      for (const auto& name : option->get_lnames()) names += ",--" + name;
      if (option->get_positional()) arguments += "argument " + option->get_name() + about;
      else if (!option->check_lname("help"))
        flags += "flag " + names.substr(1) + (option->get_items_expected_max() > 0 ? "=VALUE" : "") + about;
    }
    std::printf("command %s\nabout %s\n%s%s", path.c_str(), command.get_description().c_str(), arguments.c_str(), flags.c_str());
  }

  int refuse(const CLI::ParseError& error) {
    std::string what = error.what();
    if (auto rest = app_.remaining(); !rest.empty() && app_.get_subcommands().empty())
      what = "unknown command " + coracle::quoted(rest[0]);
    std::fprintf(stderr, "coracle-oci: %s (see coracle-oci --help)\n", coracle::one_line(what).c_str());
    return 1;
  }

  CLI::App* add(const char* name, const char* what, Command action, bool takes_id = true) {
    CLI::App* command = app_.add_subcommand(name, what);
    command->callback([this, action] { chosen_ = action; });
    if (takes_id) command->add_option("container-id", options_.id, "the container's name")->required();
    return command;
  }

  CLI::App* add_launch(const char* name, const char* what, Command action) {
    CLI::App* command = add(name, what, action);
    command->add_option("-b,--bundle", options_.bundle, "directory of config.json")->capture_default_str();
    command->add_option("-f,--config", options_.config, "file to read instead of the bundle's config.json");
    command->add_option("--console-socket", options_.console_socket, "where to send the terminal");
    command->add_option("--pid-file", options_.pid_file, "where to write the process's pid");
    add_pidfd_socket(command);
    command->add_flag("--no-pivot", options_.no_pivot, "chroot instead of pivot_root, for a root in memory");
    command->add_flag("--no-new-keyring", options_.no_new_keyring, "keep our session keyring");
    command->add_option("--preserve-fds", options_.preserve_fds, "so many descriptors from 3 on are the container's");
    add_no_subreaper(command);
    return command;
  }

  void add_no_subreaper(CLI::App* command) {
    command->add_flag("--no-subreaper", ignored_, "accepted: no process of ours reaps");
  }
  void add_pidfd_socket(CLI::App* command) {
    command->add_option("--pidfd-socket", options_.pidfd_socket, "where to send a descriptor of the process");
  }

  void add_create() { add_launch("create", "make a container, ready to start", &create); }

  void add_run() {
    CLI::App* command = add_launch("run", "make a container, start it and wait for its end", &cli::run);
    command->add_flag("-d,--detach", options_.detach, "do not wait");
    command->add_flag("--keep", options_.keep, "do not delete it when it has ended");
  }

  void add_start() { add("start", "let a created container go", start); }

  void add_kill() {
    CLI::App* command = add("kill", "send a signal", cli::kill);
    command->add_option("signal", options_.signal, "name or number")->capture_default_str();
    command->add_flag("-a,--all", options_.all, "to every process of the container");
    add_regex(command);
  }

  void add_delete() {
    CLI::App* command = add("delete", "remove a container that has ended", remove);
    command->add_flag("-f,--force", options_.force, "end it first");
    add_regex(command);
  }
  void add_regex(CLI::App* command) {
    command->add_flag("-r,--regex", options_.regex, "every container whose id matches the extended regular expression");
  }
  void add_pause() { add("pause", "stop all processes of a container", cli::pause); }
  void add_resume() { add("resume", "let them go on", resume); }
  void add_checkpoint() { add("checkpoint", "not supported", checkpoint)->allow_extras(); }
  void add_restore() { add("restore", "not supported", checkpoint)->allow_extras(); }

  void add_update() {
    CLI::App* command = add("update", "change a container's resources", update);
    command->add_option("-r,--resources", options_.resources, "file with linux.resources as JSON, - for standard input");
    using Kind = Options::LimitKind;
    auto limit = [&](const char* flag, const char* field, const char* what, Kind kind = Kind::number) {
      command->add_option_function<std::string>(
          flag,
          [=, this](const std::string& value) {
            options_.limits.push_back({field, value, kind, flag});
          },
          what);
    };
    limit("--blkio-weight", "blockIO.weight", "10 to 1000");
    limit("--cpu-period", "cpu.period", "microseconds");
    limit("--cpu-quota", "cpu.quota", "microseconds of a period");
    limit("--cpu-burst", "cpu.burst", "microseconds");
    limit("--cpu-share", "cpu.shares", "2 to 262144");
    limit("--cpu-rt-period", "cpu.realtimePeriod", "microseconds");
    limit("--cpu-rt-runtime", "cpu.realtimeRuntime", "microseconds");
    limit("--cpu-idle", "cpu.idle", "0 or 1");
    limit("--cpuset-cpus", "cpu.cpus", "0-3,7", Kind::text);
    limit("--cpuset-mems", "cpu.mems", "0-3,7", Kind::text);
    limit("--kernel-memory", "memory.kernel", "bytes", Kind::bytes);
    limit("--kernel-memory-tcp", "memory.kernelTCP", "bytes", Kind::bytes);
    limit("--memory", "memory.limit", "bytes, or with k, m, g; -1 = none", Kind::bytes);
    limit("--memory-reservation", "memory.reservation", "bytes", Kind::bytes);
    limit("--memory-swap", "memory.swap", "bytes of memory and swap together; -1 = none", Kind::bytes);
    limit("--pids-limit", "pids.limit", "how many; -1 = none");
    limit("--l3-cache-schema", "", "not supported", Kind::resctrl);
    limit("--mem-bw-schema", "", "not supported", Kind::resctrl);
  }

  void add_exec() {
    CLI::App* command = add("exec", "run another program in a container", exec);
    command->add_option("-p,--process", options_.process, "file with the process as JSON");
    command->add_option("-e,--env", options_.env, "NAME=value, more than once")->allow_extra_args(false)->take_all();
    command->add_option("--cwd", options_.cwd, "working directory");
    command->add_option("-u,--user", options_.user, "uid[:gid]");
    command->add_option("-g,--additional-gids", options_.additional_gids, "more than once")->allow_extra_args(false)->take_all();
    command->add_option("-c,--cap", options_.capabilities, "CAP_…, more than once")->allow_extra_args(false)->take_all();
    command->add_flag("-t,--tty", options_.terminal, "with a terminal");
    command->add_option("--console-socket", options_.console_socket, "where to send the terminal");
    command->add_flag("-d,--detach", options_.detach, "do not wait");
    command->add_option("--pid-file", options_.pid_file, "where to write the process's pid");
    add_pidfd_socket(command);
    command->add_option("--apparmor", options_.apparmor, "profile");
    command->add_option("--process-label", options_.process_label, "SELinux label");
    command->add_flag("--no-new-privs", options_.no_new_privileges, "gain none by executing");
    command->add_option("--preserve-fds", options_.preserve_fds, "so many descriptors from 3 on are the process's");
    command
        ->add_option("--cgroup", options_.cgroups,
                     "[CONTROLLER[,…]:]PATH, a cgroup inside the container's; more than once for cgroup v1")
        ->allow_extra_args(false)
        ->take_all();
    command->add_flag("--ignore-paused", options_.ignore_paused, "also in a paused container");
    add_no_subreaper(command);
    take_rest(command);
  }

  void add_state() { add("state", "print a container's state", state); }

  void add_list() {
    CLI::App* command = add("list", "list containers", list, false);
    command->add_option("-f,--format", options_.format, "table or json")->capture_default_str();
    command->add_flag("-q,--quiet", options_.quiet, "ids only");
  }

  void add_ps() {
    CLI::App* command = add("ps", "list a container's processes", ps);
    command->add_option("-f,--format", options_.format, "table or json")->capture_default_str();
    take_rest(command);
  }

  void add_events() {
    CLI::App* command = add("events", "print what happens to a container, and its statistics", events);
    command->add_flag("--stats", options_.stats, "print the statistics once");
    command->add_option("--interval", options_.interval, "time between statistics: 5s, 100ms")->capture_default_str();
  }

  void add_spec() {
    CLI::App* command = add("spec", "write a config.json to start from", spec, false);
    command->add_option("-b,--bundle", options_.bundle, "where to")->capture_default_str();
    command->add_option("-f,--file", options_.config, "another file than config.json; it is replaced if it exists");
    command->add_flag("--rootless", options_.rootless, "for an unprivileged user");
  }

  void add_features() { add("features", "print what this runtime can do", features, false); }

  // Words after the container's name belong to another program, even if they look like options.
  void take_rest(CLI::App* command) {
    command->prefix_command();
    command->callback([this, command, action = command->get_name() == "exec" ? &exec : &ps] {
      chosen_ = action;
      rest_ = command;
    });
  }

  static constexpr std::pair<std::string_view, void (CommandLine::*)()> kCommands[] = {
      {"create", &CommandLine::add_create},     {"run", &CommandLine::add_run},
      {"start", &CommandLine::add_start},       {"kill", &CommandLine::add_kill},
      {"delete", &CommandLine::add_delete},     {"pause", &CommandLine::add_pause},
      {"resume", &CommandLine::add_resume},     {"update", &CommandLine::add_update},
      {"exec", &CommandLine::add_exec},         {"state", &CommandLine::add_state},
      {"list", &CommandLine::add_list},         {"ps", &CommandLine::add_ps},
      {"events", &CommandLine::add_events},     {"spec", &CommandLine::add_spec},
      {"features", &CommandLine::add_features}, {"checkpoint", &CommandLine::add_checkpoint},
      {"restore", &CommandLine::add_restore}};

  int argc_;
  char** argv_;
  CLI::App app_{"Runs containers from OCI bundles.", "coracle-oci"};
  Options options_;
  std::string rootless_;
  bool ignored_ = false;
  Command chosen_ = nullptr;
  CLI::App* rest_ = nullptr;
};

}  // namespace
}  // namespace coracle::cli

int main(int argc, char** argv) { return coracle::cli::CommandLine(argc, argv).run(); }

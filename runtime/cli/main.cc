// SPDX-License-Identifier: Apache-2.0
// coracle-oci: the OCI runtime's command line over the library that the daemon uses. One container is one sandbox; its
// state lives under --root, where every call finds it again. Nothing stays in the background but coracle-pause.
// Source: opencontainers/runtime-spec runtime.md; the commands as runc and crun spell them.
#include <signal.h>

#include <CLI/CLI.hpp>
#include <condition_variable>
#include <cstdio>
#include <iostream>
#include <mutex>

#include "runtime/base/text.h"
#include "runtime/cli/bundle.h"
#include "runtime/container/local_runtime.h"
#include "runtime/oci/capabilities.h"
#include "runtime/oci/defaults.h"
#include "runtime/oci/parse.h"
#include "runtime/sys/file.h"
#include "runtime/sys/process.h"

#ifndef CORACLE_PAUSE_PROGRAM
#error "CORACLE_PAUSE_PROGRAM is where coracle-pause is installed"
#endif

namespace coracle::cli {
namespace {

using runtime::LocalRuntime;

struct Options {
  std::string root = "/run/coracle-oci", pause = CORACLE_PAUSE_PROGRAM, bundle = ".", id, pid_file, signal = "SIGTERM";
  std::string log, log_format;  // accepted for callers that always give them; errors go to standard error too
  bool detach = false, force = false, all = false, json = false, terminal = false;
  std::string cwd, format = "table";
  std::vector<std::string> env, command;
};

Result<std::unique_ptr<LocalRuntime>> open_runtime(const Options& options) {
  runtime::Config config;
  config.state_dir = options.root + "/state";
  config.run_dir = options.root + "/run";
  config.pause_program = options.pause;
  return LocalRuntime::open(config, nullptr, nullptr, false);
}

struct Found {
  runtime::SandboxState sandbox;
  json::value metadata;
  const runtime::ContainerState* container() const {
    return sandbox.containers.empty() ? nullptr : &sandbox.containers[0];
  }
};

Result<Found> find_container(LocalRuntime& runtime, const std::string& id) {
  if (!is_valid_id(id)) return Error(Code::invalid, "container id " + coracle::quoted(id) + " is malformed");
  auto state = runtime.sandbox(sandbox_id(id));
  if (!state) return Error(Code::not_found, "container " + coracle::quoted(id) + " does not exist");
  Found out;
  out.metadata = TRY(parse_json(state->metadata));
  if (get_string(out.metadata, "id") != id)
    return Error(Code::not_found, "container " + coracle::quoted(id) + " does not exist");
  out.sandbox = std::move(*state);
  return out;
}

std::string status_of(const Found& found) {
  const runtime::ContainerState* container = found.container();
  if (!container || !container->running) return "stopped";
  return container->held ? "created" : "running";
}

json::object state_of(const Found& found) {
  const runtime::ContainerState* container = found.container();
  json::object out{{"ociVersion", get_string(found.metadata, "version")},
                   {"id", get_string(found.metadata, "id")},
                   {"status", status_of(found)},
                   {"pid", container ? container->pid : 0},
                   {"bundle", get_string(found.metadata, "bundle")}};
  const json::object& annotations = get_object(found.metadata, "annotations");
  if (!annotations.empty()) out["annotations"] = annotations;
  return out;
}

// ---- create, run, start ----

Result<std::shared_ptr<const std::array<Fd, 3>>> own_streams() {
  auto out = std::make_shared<std::array<Fd, 3>>();
  for (int i = 0; i < 3; ++i) {
    Fd own(i);
    auto copy = sys::duplicate(own);
    (void)own.release();  // still ours to use
    (*out)[size_t(i)] = TRY(std::move(copy));
  }
  return std::shared_ptr<const std::array<Fd, 3>>(std::move(out));
}

Result<void> write_pid_file(const Options& options, LocalRuntime& runtime) {
  if (options.pid_file.empty()) return {};
  Found found = TRY(find_container(runtime, options.id));
  int pid = found.container() ? found.container()->pid : 0;
  return sys::replace_file(options.pid_file, std::to_string(pid), 0644, sys::Durability::volatile_);
}

// Makes the sandbox and the container in it; both are gone again when it fails.
Result<void> make(const Options& options, LocalRuntime& runtime, bool hold) {
  if (!is_valid_id(options.id)) return Error(Code::invalid, "container id " + coracle::quoted(options.id) + " is malformed");
  char* absolute = ::realpath(options.bundle.c_str(), nullptr);
  std::string directory = absolute ? absolute : options.bundle;
  ::free(absolute);
  Bundle bundle = TRY(load_bundle(directory, options.id));
  if (bundle.container.spec.process.terminal)
    return Error(Code::unsupported, "config.json: process.terminal (set it to false)");
  bundle.container.streams = TRY(own_streams());
  TRY(runtime.create_sandbox(bundle.sandbox));
  auto started = hold ? runtime.create_container(bundle.sandbox.id, bundle.container)
                      : runtime.start_container(bundle.sandbox.id, bundle.container);
  if (started) started = write_pid_file(options, runtime);
  if (started) return {};
  (void)runtime.remove_sandbox(bundle.sandbox.id);  // the first failure is the one to tell
  return started;
}

// Waits for the container's end, handing on the signals that reach us.
Result<int> wait_in_foreground(LocalRuntime& runtime, const std::string& id, const Fd& signals) {
  Fd changed = TRY(sys::make_eventfd());
  Fd epoll = TRY(sys::make_epoll());
  runtime.on_change([&](const std::string&) { sys::signal_eventfd(changed); });
  TRY(sys::epoll_add(epoll, changed, 1 /* EPOLLIN */, 0));
  TRY(sys::epoll_add(epoll, signals, 1, 1));
  while (true) {
    sys::drain_eventfd(changed);
    auto found = find_container(runtime, id);
    const runtime::ContainerState* container = found ? found->container() : nullptr;
    bool has_ended = !container || container->exit || !found->sandbox.alive;
    if (has_ended) {
      runtime.on_change({});
      return container && container->exit ? container->exit->exit_code : 255;
    }
    TRY(sys::epoll_wait(epoll, std::nullopt));
    while (auto signal = sys::read_signal(signals)) TRY(runtime.signal_container(sandbox_id(id), kContainer, *signal));
  }
}

Result<int> run(const Options& options) {
  Fd signals = TRY(sys::make_signalfd({SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH}));
  auto runtime = TRY(open_runtime(options));
  TRY(make(options, *runtime, false));
  if (options.detach) return 0;
  int code = TRY(wait_in_foreground(*runtime, options.id, signals));
  TRY(runtime->remove_sandbox(sandbox_id(options.id)));
  return code;
}

Result<int> create(const Options& options) {
  auto runtime = TRY(open_runtime(options));
  TRY(make(options, *runtime, true));
  return 0;
}

Result<int> start(const Options& options) {
  auto runtime = TRY(open_runtime(options));
  Found found = TRY(find_container(*runtime, options.id));
  if (status_of(found) != "created") return Error(Code::conflict, "container is " + status_of(found) + ", not created");
  TRY(runtime->release_container(found.sandbox.id, kContainer));
  return 0;
}

// ---- look, signal, delete, exec ----

Result<int> state(const Options& options) {
  auto runtime = TRY(open_runtime(options));
  Found found = TRY(find_container(*runtime, options.id));
  std::cout << to_pretty(state_of(found), 2) << "\n";
  return 0;
}

Result<int> list(const Options& options) {
  auto runtime = TRY(open_runtime(options));
  auto sandboxes = TRY(runtime->sandboxes());
  json::array all;
  for (auto& sandbox : sandboxes) {
    auto metadata = parse_json(sandbox.metadata);
    if (!metadata) continue;
    Found found{std::move(sandbox), std::move(*metadata)};
    all.push_back(state_of(found));
  }
  if (options.format == "json") {
    std::cout << to_text(all) << "\n";
    return 0;
  }
  std::printf("%-24s %-8s %-10s %s\n", "ID", "PID", "STATUS", "BUNDLE");
  for (const json::value& each : all)
    std::printf("%-24s %-8d %-10s %s\n", std::string(get_string(each, "id")).c_str(), int(get_int(each, "pid")),
                std::string(get_string(each, "status")).c_str(), std::string(get_string(each, "bundle")).c_str());
  return 0;
}

Result<int> kill(const Options& options) {
  auto number = sys::signal_number(options.signal);
  if (!number) return Error(Code::invalid, "unknown signal " + coracle::quoted(options.signal));
  auto runtime = TRY(open_runtime(options));
  Found found = TRY(find_container(*runtime, options.id));
  if (status_of(found) == "stopped") return Error(Code::conflict, "container is not running");
  if (options.all && *number == SIGKILL) {
    TRY(runtime->kill_container(found.sandbox.id, kContainer));
  } else {
    TRY(runtime->signal_container(found.sandbox.id, kContainer, *number));
  }
  return 0;
}

Result<int> remove(const Options& options) {
  auto runtime = TRY(open_runtime(options));
  auto found = find_container(*runtime, options.id);
  if (!found && options.force && found.error().code() == Code::not_found) return 0;
  if (!found) return found.take_error();
  if (status_of(*found) == "running" && !options.force)
    return Error(Code::conflict, "container is running; stop it, or delete it with --force");
  TRY(runtime->remove_sandbox(found->sandbox.id));
  return 0;
}

Result<int> exec(const Options& options) {
  auto runtime = TRY(open_runtime(options));
  Found found = TRY(find_container(*runtime, options.id));
  runtime::ExecSpec spec;
  spec.args = options.command;
  spec.extra_env = options.env;
  spec.cwd = options.cwd;
  spec.streams = TRY(own_streams());
  auto running = TRY(runtime->exec(found.sandbox.id, kContainer, spec));
  return running->wait({});
}

// ---- what we are ----

Result<int> spec(const Options& options) {
  oci::Spec spec = runtime::default_spec();
  spec.process.args = {"sh"};
  spec.process.cwd = "/";
  spec.process.no_new_privileges = true;
  spec.root = {"rootfs", true};
  spec.hostname = "coracle";
  for (const char* type : {"pid", "network", "ipc", "uts", "mount", "cgroup"})
    spec.linux_.namespaces.push_back({type, ""});
  std::string path = options.bundle + "/config.json";
  if (sys::exists(path)) return Error(Code::already_exists, path + " exists; remove it first");
  TRY(sys::replace_file(path, to_pretty(oci::to_json(spec), 4) + "\n", 0644));
  return 0;
}

Result<int> features(const Options&) {
  json::array capabilities;
  for (const std::string& name : oci::all_capabilities()) capabilities.emplace_back(name);
  json::object out{
      {"ociVersionMin", "1.0.0"},
      {"ociVersionMax", "1.2.0"},
      {"hooks", json::array{}},
      {"mountOptions", json::array{"bind",        "dev",     "exec",  "noatime",  "nodev", "noexec",      "nosuid",
                                   "nosymfollow", "private", "rbind", "relatime", "ro",    "rprivate",    "rro",
                                   "rshared",     "rslave",  "rw",    "shared",   "slave", "strictatime", "suid"}},
      {"linux",
       json::object{{"namespaces", json::array{"cgroup", "ipc", "mount", "network", "pid", "uts"}},
                    {"capabilities", std::move(capabilities)},
                    {"cgroup", json::object{{"v1", false}, {"v2", true}, {"systemd", false}, {"systemdUser", false}}},
                    {"seccomp", json::object{{"enabled", true}}},
                    {"apparmor", json::object{{"enabled", true}}},
                    {"selinux", json::object{{"enabled", true}}}}}};
  std::cout << to_pretty(out, 2) << "\n";
  return 0;
}

int finish(Result<int> result) {
  if (result) return *result;
  std::fprintf(stderr, "coracle-oci: %s\n", result.error().text().c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Runs containers from OCI bundles.", "coracle-oci"};
  app.require_subcommand(1);
  app.set_version_flag("--version", "coracle-oci 0.1.0\nspec: 1.2.0");
  Options options;
  app.add_option("--root", options.root, "where the state of containers is kept")->capture_default_str();
  app.add_option("--pause", options.pause, "the coracle-pause program")->capture_default_str();
  app.add_option("--log", options.log, "accepted, not used: errors go to standard error");
  app.add_option("--log-format", options.log_format, "accepted, not used");

  Result<int> (*chosen)(const Options&) = nullptr;
  auto verb = [&](const char* name, const char* what, Result<int> (*action)(const Options&), bool takes_id) {
    CLI::App* command = app.add_subcommand(name, what);
    command->callback([&chosen, action] { chosen = action; });
    if (takes_id) command->add_option("id", options.id, "the container's name")->required();
    return command;
  };
  for (auto [name, what, action] : {std::tuple("create", "make a container, ready to start", &create),
                                    std::tuple("run", "make a container, start it and wait for its end", &run)}) {
    CLI::App* command = verb(name, what, action, true);
    command->add_option("-b,--bundle", options.bundle, "directory of config.json")->capture_default_str();
    command->add_option("--pid-file", options.pid_file, "where to write the process's pid");
    if (action == &run) command->add_flag("-d,--detach", options.detach, "do not wait");
  }
  verb("start", "let a created container go", start, true);
  verb("state", "print a container's state", state, true);
  CLI::App* kill_command = verb("kill", "send a signal", kill, true);
  kill_command->add_option("signal", options.signal, "name or number")->capture_default_str();
  kill_command->add_flag("-a,--all", options.all, "to every process of the container (SIGKILL)");
  verb("delete", "remove a stopped container", remove, true)
      ->add_flag("-f,--force", options.force, "also a running one");
  verb("list", "list containers", list, false)->add_option("-f,--format", options.format, "table or json");
  CLI::App* exec_command = verb("exec", "run another program in a container", exec, true);
  exec_command->add_option("-e,--env", options.env, "NAME=value, more than once")->allow_extra_args(false);
  exec_command->add_option("--cwd", options.cwd, "working directory");
  exec_command->prefix_command();  // what follows the name is the program's, whatever it looks like
  verb("spec", "write a config.json to start from", spec, false)->add_option("-b,--bundle", options.bundle, "where to");
  verb("features", "print what this runtime can do", features, false);
  CLI11_PARSE(app, argc, argv);
  options.command = exec_command->remaining();
  if (!options.command.empty() && options.command[0] == "--") options.command.erase(options.command.begin());
  return finish(chosen(options));
}

}  // namespace coracle::cli

int main(int argc, char** argv) { return coracle::cli::main(argc, argv); }

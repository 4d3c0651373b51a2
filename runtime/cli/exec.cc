// SPDX-License-Identifier: Apache-2.0
// exec: another process in a running container.
#include <sched.h>

#include <cerrno>

#include "runtime/base/text.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/log.h"
#include "runtime/cli/terminal.h"
#include "runtime/container/direct_launch.h"
#include "runtime/container/explain.h"
#include "runtime/oci/capabilities.h"
#include "runtime/oci/parse.h"
#include "runtime/oci/validate.h"
#include "runtime/sys/file.h"
#include "runtime/sys/process.h"

namespace coracle::cli {
namespace {

constexpr size_t kProcessBytesMax = 4 << 20;
// The words of runc, which writes the number instead of "of the process"; here there is none before it has joined.
constexpr const char* kJoin = "error adding pid of the process to cgroups";

// "uid[:gid]": only decimal integers (CVE-2026-30892).
Result<void> set_user(const std::string& text, oci::User& user) {
  auto parts = split(text, ':');
  auto uid = parse_number<uint32_t>(parts[0]);
  auto gid = parts.size() > 1 ? parse_number<uint32_t>(parts[1]) : std::optional<uint32_t>(user.gid);
  if (parts.size() > 2 || !uid || !gid) return Error(Code::invalid, "--user " + coracle::quoted(text) + " is not uid[:gid]");
  user.uid = *uid;
  user.gid = *gid;
  return {};
}

Result<void> check_cgroup(const std::string& inside) {
  for (std::string_view part : split(inside, '/'))
    if (part == "..")
      return Error(Code::invalid,
                   "--cgroup: bad sub cgroup path " + coracle::quoted(inside) + ": `..` components are not allowed");
  return {};
}

// "path", or "controller,controller:path" for each hierarchy of cgroup v1. Source: runc
Result<cgroup::SubCgroups> sub_cgroups(const std::vector<std::string>& given) {
  cgroup::SubCgroups out;
  for (const std::string& each : given) {
    auto wrong = [&](const char* why) { return Error(Code::invalid, "--cgroup " + coracle::quoted(each) + ": " + why); };
    const size_t colon = each.find(':');
    const std::string path = colon == each.npos ? each : each.substr(colon + 1);
    TRY(check_cgroup(path));
    if (colon == each.npos && given.size() > 1) return wrong("its controller is missing");
    if (colon == each.npos) {
      out.everywhere = path;
      continue;
    }
    for (std::string_view controller : split(std::string_view(each).substr(0, colon), ',')) {
      if (controller.empty()) return wrong("a controller has no name");
      if (!out.of.emplace(controller, path).second) return wrong("a second one for the same controller");
    }
  }
  return out;
}

Result<std::vector<Fd>> tasks_of(const cgroup::Container& cgroup, const cgroup::SubCgroups& inside) {
  auto tasks = cgroup.v1_tasks(inside);
  if (!tasks && tasks.error().code() == Code::not_found) return tasks.take_error().wrap(kJoin);
  return tasks;
}

Result<oci::Process> process_of(const Options& options, const Container& container) {
  if (!options.process.empty()) {
    std::string text = TRY(sys::read_file(options.process, kProcessBytesMax).wrap("--process"));
    json::value process = TRY(parse_json(text).wrap("--process"));
    oci::Process out = TRY(oci::parse_process(process).wrap("--process"));
    // What is left out is the container's. Source: runc; crun for the capabilities.
    const oci::Process& own = container.saved().process;
    if (!out.oom_score_adj) out.oom_score_adj = own.oom_score_adj;
    if (!out.user.umask) out.user.umask = own.user.umask;
    if (!out.capabilities) out.capabilities = own.capabilities;
    if (out.apparmor_profile.empty()) out.apparmor_profile = own.apparmor_profile;
    if (out.selinux_label.empty()) out.selinux_label = own.selinux_label;
    return out;
  }
  oci::Process out = container.saved().process;
  out.args = options.command;
  out.terminal = options.terminal;
  for (const std::string& variable : options.env) {
    if (variable.find('=') == variable.npos || variable[0] == '=')
      return Error(Code::invalid, "--env " + coracle::quoted(variable) + " is not NAME=value");
    out.env.push_back(variable);  // the last one of a name wins
  }
  if (!options.cwd.empty()) out.cwd = options.cwd;
  if (!options.user.empty()) {
    out.user.additional_gids.clear();
    TRY(set_user(options.user, out.user));
  }
  for (uint32_t gid : options.additional_gids) out.user.additional_gids.push_back(gid);
  if (!options.apparmor.empty()) out.apparmor_profile = options.apparmor;
  if (!options.process_label.empty()) out.selinux_label = options.process_label;
  if (options.no_new_privileges) out.no_new_privileges = true;
  if (!options.capabilities.empty()) {
    if (!out.capabilities) out.capabilities.emplace();
    auto add_to = [&](std::vector<std::string>& set) {
      set.insert(set.end(), options.capabilities.begin(), options.capabilities.end());
    };
    for (auto* set : {&out.capabilities->bounding, &out.capabilities->effective, &out.capabilities->permitted}) add_to(*set);
    // A user other than root would lose them at exec. Root's are ambient where something is inheritable, as with runc.
    const bool is_ambient = out.user.uid != 0 || !out.capabilities->inheritable.empty();
    if (out.user.uid != 0) add_to(out.capabilities->inheritable);
    if (is_ambient) add_to(out.capabilities->ambient);
  }
  return out;
}

// Processes the child's reports until it has executed the program. Returns its terminal, if we connect it to ours.
Result<Fd> attend(runtime::DirectLaunch& launch, const Options& options, const oci::Spec& spec, const Container& container,
                  const runtime::SeccompPtr& seccomp) {
  using Kind = runtime::DirectLaunch::News::Kind;
  Fd terminal;
  while (true) {
    runtime::DirectLaunch::News news = TRY(launch.next().wrap("launch"));
    switch (news.kind) {
      case Kind::failure: return runtime::explain_failure(news.failure, spec, {});
      case Kind::terminal:
        if (options.console_socket.empty()) terminal = std::move(news.fd);
        else TRY(send_terminal(options.console_socket, news.fd));
        break;
      case Kind::listener: TRY(send_listener(*seccomp->listener, container.state(Status::running), launch.pid(), news.fd)); break;
      case Kind::executed: return terminal;
      default: break;
    }
  }
}

}  // namespace

Result<int> exec(const Options& options) {
  Fd signals;
  if (!options.detach) signals = TRY(block_signals());
  Containers containers = TRY(open_containers(options));
  Container container = TRY(containers.find(options.id));
  const Alive alive = TRY(container.alive());
  if (alive.status == Status::paused && !options.ignore_paused)
    return Error(Code::conflict, "container " + coracle::quoted(options.id) +
                                     " is paused: cannot exec in a paused container (use --ignore-paused to override)");
  oci::Spec spec;
  spec.process = TRY(process_of(options, container));
  drop_unknown_capabilities(spec.process);
  TRY(oci::validate(spec));
  if (spec.process.terminal && options.detach && options.console_socket.empty())
    return Error(Code::invalid, "process.terminal is set: --console-socket is missing");
  const Fd& target = alive.process;
  TRY(set_home(spec.process, sys::root_of(target)));
  spec.linux_.personality = container.saved().personality;
  spec.linux_.memory_policy = container.saved().memory_policy;
  runtime::PrepareInput input;
  input.spec = &spec;
  input.sandbox = sandbox_info_of(spec);
  input.own = TRY(runtime::launcher_info());
  input.seccomp = TRY(find_seccomp(containers, container.saved().seccomp_name));
  input.kept_fds = options.preserve_fds;
  input.keeps_groups = container.saved().annotations.count(kKeepGroups);
  if (!container.saved().keeps_keyring) input.keyring = keyring_of(options.id);
  std::optional<runtime::UserNamespace> user;
  if (container.saved().has_user_namespace) user = TRY(runtime::user_namespace_of(target).wrap("linux.namespaces: user"));
  input.user = user ? &*user : nullptr;
  TRY(tell_missing_capabilities(spec.process, input.own, user.has_value()));
  input.target = &target;
  const cgroup::SubCgroups inside = TRY(sub_cgroups(options.cgroups));
  Fd directory;
  const bool has_cgroup = alive.cgroup.exists() || !alive.cgroup.record().path.empty();
  if (has_cgroup) directory = TRY(alive.cgroup.directory_for(inside.everywhere, container.saved().pid).wrap(kJoin));
  auto v1_tasks = TRY(tasks_of(alive.cgroup, inside));
  input.v1_tasks = &v1_tasks;
  runtime::Prepared prepared = TRY(runtime::prepare_exec(input, spec.process));
  if (spec.process.exec_cpu_affinity && !spec.process.exec_cpu_affinity->initial.empty()) {
    auto bits = TRY(runtime::plan_bits(spec.process.exec_cpu_affinity->initial, "process.execCPUAffinity.initial"));
    TRY(sys::set_own_affinity(bits).wrap("process.execCPUAffinity.initial"));
  }
  runtime::LaunchSpec start;
  start.prepared = &prepared;
  if (directory) start.cgroup = &directory;
  start.target = &target;
  start.has_terminal = spec.process.terminal;
  auto begun = runtime::DirectLaunch::begin(start);
  // The kernel adds no process to a cgroup that has controllers for its children.
  if (!begun && begun.error().err() == EBUSY && directory) return begun.take_error().wrap(kJoin);
  runtime::DirectLaunch launch = TRY(std::move(begun).wrap("launch"));
  auto terminal = attend(launch, options, spec, container, input.seccomp);
  auto written = terminal ? send_pidfd(options.pidfd_socket, launch.pidfd()) : Result<void>(terminal.take_error());
  if (written) written = write_pid_file(options.pid_file, launch.pid());
  if (!written) {
    launch.end();
    return written.take_error();
  }
  if (options.detach) return 0;
  return run_foreground(launch.pidfd(), signals, std::move(*terminal)).wrap("wait for the process");
}

}  // namespace coracle::cli

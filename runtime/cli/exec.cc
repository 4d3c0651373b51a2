// SPDX-License-Identifier: Apache-2.0
// exec: another process in a container that runs.
#include <sched.h>

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

// "uid[:gid]": numbers only, whole ones (CVE-2026-30892).
Result<void> set_user(const std::string& text, oci::User& user) {
  auto parts = split(text, ':');
  auto uid = parse_number<uint32_t>(parts[0]);
  auto gid = parts.size() > 1 ? parse_number<uint32_t>(parts[1]) : std::optional<uint32_t>(user.gid);
  if (parts.size() > 2 || !uid || !gid) return Error(Code::invalid, "--user " + coracle::quoted(text) + " is not uid[:gid]");
  user.uid = *uid;
  user.gid = *gid;
  return {};
}

Result<oci::Process> process_of(const Options& options, const Container& container) {
  if (!options.process.empty()) {
    std::string text = TRY(sys::read_file(options.process, kProcessBytesMax).wrap("--process"));
    json::value process = TRY(parse_json(text).wrap("--process"));
    return oci::parse_process(process).wrap("--process");
  }
  oci::Process out = container.saved().process;
  out.args = options.command;
  out.terminal = options.terminal;
  out.env.insert(out.env.end(), options.env.begin(), options.env.end());
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
    for (auto* set : {&out.capabilities->bounding, &out.capabilities->effective, &out.capabilities->permitted})
      set->insert(set->end(), options.capabilities.begin(), options.capabilities.end());
  }
  return out;
}

Result<Fd> cgroup_of(const Options& options, const Container& container) {
  auto cgroup = container.find_cgroup();
  if (!cgroup && cgroup.error().code() == Code::not_found) return Fd();
  if (!cgroup) return cgroup.take_error();
  if (!cgroup->exists()) return Fd();
  return cgroup->directory_for(options.cgroup, container.saved().pid);
}

Result<void> check_state(const Options& options, const Container& container) {
  const Status status = TRY(container.status());
  if (status == Status::paused && !options.ignore_paused)
    return Error(Code::conflict, "container " + coracle::quoted(options.id) + " is paused; exec --ignore-paused waits in it");
  if (status != Status::running && status != Status::created && status != Status::paused)
    return Error(Code::conflict, "container " + coracle::quoted(options.id) + " is " + name_of(status) + ", not running");
  return {};
}

// What the newborn says until it has become the program. Its terminal, when that is ours to join.
Result<Fd> attend(runtime::Birth& birth, const Options& options, const oci::Spec& spec) {
  using Kind = runtime::Birth::News::Kind;
  Fd terminal;
  while (true) {
    runtime::Birth::News news = TRY(birth.next().wrap("launch"));
    switch (news.kind) {
      case Kind::failure: return runtime::explain_failure(news.failure, spec, {});
      case Kind::terminal:
        if (options.console_socket.empty()) terminal = std::move(news.fd);
        else TRY(send_terminal(options.console_socket, news.fd));
        break;
      case Kind::listener:
        return Error(Code::unsupported, "linux.seccomp.listenerPath: exec into a container whose calls are notified");
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
  TRY(check_state(options, container));
  oci::Spec spec;
  spec.process = TRY(process_of(options, container));
  drop_unknown_capabilities(spec.process);
  TRY(oci::validate(spec));
  if (spec.process.terminal && options.detach && options.console_socket.empty())
    return Error(Code::invalid, "process.terminal is set: --console-socket is missing");
  Fd target = TRY(container.pidfd());
  runtime::PrepareInput input;
  input.spec = &spec;
  input.sandbox = facts_of(spec);
  input.own = TRY(runtime::own_facts());
  input.seccomp = TRY(find_seccomp(containers, container.saved().seccomp_name));
  input.kept_fds = options.preserve_fds;
  std::optional<runtime::UserNamespace> user;
  if (container.saved().has_user_namespace) user = TRY(runtime::user_namespace_of(target).wrap("linux.namespaces: user"));
  input.user = user ? &*user : nullptr;
  input.target = &target;
  runtime::Prepared prepared = TRY(runtime::prepare_exec(input, spec.process));
  Fd cgroup = TRY(cgroup_of(options, container));
  if (spec.process.exec_cpu_affinity && !spec.process.exec_cpu_affinity->initial.empty()) {
    auto bits = TRY(runtime::plan_bits(spec.process.exec_cpu_affinity->initial, "process.execCPUAffinity.initial"));
    TRY(sys::set_own_affinity(bits).wrap("process.execCPUAffinity.initial"));
  }
  runtime::BirthSpec start;
  start.prepared = &prepared;
  if (cgroup) start.cgroup = &cgroup;
  start.target = &target;
  start.has_terminal = spec.process.terminal;
  runtime::Birth birth = TRY(runtime::Birth::begin(start).wrap("launch"));
  auto terminal = attend(birth, options, spec);
  auto written = terminal ? write_pid_file(options.pid_file, birth.pid()) : Result<void>(terminal.take_error());
  if (!written) {
    birth.end();
    return written.take_error();
  }
  if (options.detach) return 0;
  return stay_in_front(birth.pidfd(), signals, std::move(*terminal)).wrap("wait for the process");
}

}  // namespace coracle::cli

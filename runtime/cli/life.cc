// SPDX-License-Identifier: Apache-2.0
// Operations on an existing container: start, kill, delete, pause, resume, update.
#include <regex.h>
#include <signal.h>

#include <algorithm>
#include <charconv>

#include "runtime/base/scope.h"
#include "runtime/base/signal_name.h"
#include "runtime/base/text.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/hooks.h"
#include "runtime/cli/log.h"
#include "runtime/cli/notify.h"
#include "runtime/container/direct_launch.h"
#include "runtime/container/explain.h"
#include "runtime/oci/parse.h"
#include "runtime/sys/file.h"
#include "runtime/sys/process.h"

namespace coracle::cli {
namespace {

constexpr std::chrono::seconds kFreezeTimeout{10};
constexpr size_t kResourcesBytesMax = 1 << 20;
constexpr const char* kUsedSocket = "started.sock";  // deleted with the container's directory

Error not_in(const Container& container, Status status, const char* wanted) {
  return Error(Code::conflict,
               "container " + coracle::quoted(container.saved().id) + " is " + name_of(status) + ", not " + wanted);
}

// In words that engines look for: containerd takes another error of kill for one that leaves the container running.
Error not_running(const Container& container) {
  return Error(Code::conflict, "container not running: " + coracle::quoted(container.saved().id) + " is stopped");
}

Result<Container> find_to_change(const Options& options) {
  Containers containers = TRY(open_containers(options));
  return containers.find_to_change(options.id);
}

// The command for every container whose id matches the expression that is given as id. Source: crun
Result<int> for_all_like(const Options& options, Result<int> (*command)(const Options&)) {
  regex_t expression;
  if (::regcomp(&expression, options.id.c_str(), REG_EXTENDED | REG_NOSUB) != 0)
    return Error(Code::invalid, "--regex: " + coracle::quoted(options.id) + " is no regular expression");
  Scope release([&] { ::regfree(&expression); });
  Containers containers = TRY(open_containers(options));
  auto ids = TRY(containers.list());
  bool complete = true;
  for (const std::string& id : ids) {
    if (::regexec(&expression, id.c_str(), 0, nullptr, 0) != 0) continue;
    Options one = options;
    one.id = id;
    one.regex = false;
    auto done = command(one);
    if (done) continue;
    warn("container " + id + ": " + done.error().text());  // the others are done
    complete = false;
  }
  return complete ? 0 : 1;
}

// Does nothing if there are none. Without a cgroup only the first process is known.
Result<void> signal_all(const Container& container, int signal) {
  cgroup::Container cgroup = TRY(container.find_cgroup());
  if (!cgroup.exists() && !cgroup.record().path.empty()) return {};
  if (!cgroup.exists()) {
    auto pidfd = container.pidfd();
    if (pidfd) (void)sys::send_signal(*pidfd, signal);  // it may have ended
    return {};
  }
  if (signal == SIGKILL) return cgroup.kill();
  auto pids = TRY(cgroup.pids());
  for (int pid : pids) {
    auto pidfd = sys::open_pidfd(pid);
    if (pidfd) (void)sys::send_signal(*pidfd, signal);  // it may have ended
  }
  return {};
}

bool has_processes(const Container& container) {
  auto cgroup = container.find_cgroup();
  auto pids = cgroup && cgroup->exists() ? cgroup->pids() : Result<std::vector<int>>(std::vector<int>());
  return pids && !pids->empty();
}

// Merges `given` into `under`: objects member by member, other values as a whole. RFC 7396 without removals.
void lay_over(json::value& under, const json::value& given) {
  for (const auto& [name, value] : given.get_object()) {
    json::value& place = under.get_object()[name];
    if (value.is_object() && place.is_object()) lay_over(place, value);
    else place = value;
  }
}

// "64M", "1.5gib" as Docker's clients write it: a number, then b, k, m, g, t or p, optionally followed by "b" or "ib"; -1: no
// limit. Source: docker/go-units, RAMInBytes; runc.
std::optional<int64_t> parse_bytes(std::string_view text) {
  if (text == "-1") return -1;
  const size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  double number = 0;
  const bool is_number = std::from_chars(text.data(), text.data() + digits, number).ptr == text.data() + digits && digits > 0;
  std::string unit = to_lower(trim(text.substr(digits)));
  if (unit == "b") unit.clear();
  for (std::string_view tail : {"ib", "b"})
    if (unit.size() == 1 + tail.size() && unit.ends_with(tail)) unit.resize(1);
  constexpr std::string_view kUnits = "kmgtp";
  const size_t power = unit.empty() ? 0 : kUnits.find(unit) + 1;
  const bool is_known = unit.empty() || (unit.size() == 1 && power > 0);
  if (!is_number || !is_known) return std::nullopt;
  const double bytes = number * double(int64_t(1) << (10 * power));
  return bytes < 0x1p63 ? std::optional(int64_t(bytes)) : std::nullopt;
}

// Sets a flag's value in the `resources` of config.json; one without a value changes nothing, as with runc. Errors: invalid,
// unsupported, with the flag.
Result<void> put_limit(json::value& resources, const Options::Limit& limit) {
  if (limit.value.empty()) return {};
  if (limit.kind == Options::LimitKind::resctrl) return Error(Code::unsupported, limit.flag + ": resctrl is not supported");
  json::value& place = make(resources, limit.field);
  if (limit.kind == Options::LimitKind::text) {
    place = limit.value;
    return {};
  }
  auto number = limit.kind == Options::LimitKind::bytes ? parse_bytes(limit.value) : parse_number<int64_t>(limit.value);
  if (!number) return Error(Code::invalid, limit.flag + " " + coracle::quoted(limit.value) + " is not a number");
  place = *number;
  return {};
}

Result<oci::Resources> changed_resources(const Options& options, const oci::Resources& before) {
  oci::Spec spec;
  spec.process.args = {"update"};
  spec.root.path = "/";
  spec.linux_.resources = before;
  json::value config = oci::to_json(spec);
  json::value& resources = make(config, "linux.resources");
  json::value given = json::object();
  if (!options.resources.empty()) {
    auto read = options.resources == "-" ? sys::read_standard_input(kResourcesBytesMax)
                                         : sys::read_file(options.resources, kResourcesBytesMax);
    std::string text = TRY(std::move(read).wrap("--resources"));
    given = TRY(parse_json(text).wrap("--resources"));
    if (!given.is_object()) return Error(Code::invalid, "--resources: not an object");
  }
  for (const Options::Limit& limit : options.limits) TRY(put_limit(given, limit));
  if (!resources.is_object()) resources = json::object();
  // Without a limit of memory, there is none of memory and swap together unless it is given.
  if (get_int(given, "memory.limit") == -1 && !find(given, "memory.swap")) make(given, "memory.swap") = -1;
  // An idle cgroup has no shares: what is given takes the place of the other one. Source: runc; sched_group_set_idle() of Linux
  if (get_int(given, "cpu.idle") == 1 && !find(given, "cpu.shares")) make(given, "cpu.shares") = 0;
  const bool ends_idleness = get_int(given, "cpu.shares") > 0 && get_int(resources, "cpu.idle") == 1;
  if (ends_idleness && !find(given, "cpu.idle")) make(given, "cpu.idle") = 0;
  lay_over(resources, given);
  oci::Spec changed = TRY(oci::parse_spec(config).wrap("--resources"));
  return std::move(changed.linux_.resources);
}

// Others can change the container meanwhile.
Result<void> wait_until_ready(Container& container, const NotifyRelay& relay) {
  container.unlock();
  auto process = container.pidfd();
  if (!process && process.error().code() == Code::not_found) return {};  // it has ended
  Fd pidfd = TRY(std::move(process));
  return relay.wait(pidfd, container.saved().pid);
}

}  // namespace

Result<int> start(const Options& options) {
  Containers containers = TRY(open_containers(options));
  Container container = TRY(containers.find_to_change(options.id));
  Status status = TRY(container.status());
  if (status != Status::created) return not_in(container, status, "created");
  auto relay = TRY(NotifyRelay::open(container));
  // Removes the status created, whatever the result; if nobody could be reached, start can be repeated.
  TRY(sys::rename_at(container.directory(), kStartSocket, container.directory(), kUsedSocket));
  auto reached = runtime::start_held(container.directory(), kUsedSocket);
  if (!reached && reached.error().code() == Code::conflict)
    (void)sys::rename_at(container.directory(), kUsedSocket, container.directory(), kStartSocket);
  runtime::Started started = TRY(std::move(reached).wrap("start"));
  if (!started.has_executed) {
    oci::Spec spec;
    spec.process = container.saved().process;
    spec.hooks = container.saved().hooks;
    return runtime::explain_failure(started.failure, spec, {}, started.said);
  }
  // The specification requires an error, but its validation test (validation/start) requires success, as crun does.
  if (container.saved().process.args.empty()) {
    warn("config.json has no process: there was nothing to start");
    return 0;
  }
  auto ran = run_hooks(container.saved().hooks.poststart, "poststart", container.state(Status::running));
  if (ran) {
    if (relay) TRY(wait_until_ready(container, *relay));
    return 0;
  }
  // "MUST generate an error, stop the container, and continue the lifecycle at step 12", its deletion: runtime.md, since 1.3.
  auto gone = destroy(containers, container);
  if (!gone) warn("stop the container: " + gone.error().text());
  return ran.take_error();
}

Result<int> kill(const Options& options) {
  if (options.regex) return for_all_like(options, kill);
  auto number = options.signal == "0" ? std::optional(0) : signal_number(options.signal);  // 0: is there somebody to signal?
  if (!number) return Error(Code::invalid, "unknown signal " + coracle::quoted(options.signal));
  Container container = TRY(find_to_change(options));
  if (options.all) {
    TRY(signal_all(container, *number));
    return 0;
  }
  auto pidfd = container.pidfd();
  if (!pidfd && pidfd.error().code() == Code::not_found) {
    // In the caller's pid namespace the other processes survive the first one.
    const bool has_others = *number == SIGKILL && !container.saved().has_pid_namespace && has_processes(container);
    if (!has_others) return not_running(container);
    TRY(signal_all(container, SIGKILL));
    return 0;
  }
  Fd process = TRY(std::move(pidfd));
  // Without a pid namespace of its own, the other processes would survive.
  const bool kills_all = *number == SIGKILL && !container.saved().has_pid_namespace;
  if (kills_all) TRY(signal_all(container, SIGKILL));
  auto sent = sys::send_signal(process, *number);
  if (!sent && sent.error().code() == Code::not_found) {  // ended meanwhile, by the signal to all or by itself
    if (kills_all) return 0;
    return not_running(container);
  }
  TRY(std::move(sent));
  return 0;
}

Result<int> remove(const Options& options) {
  if (options.regex) return for_all_like(options, remove);
  Containers containers = TRY(open_containers(options));
  auto container = containers.find_to_change(options.id);
  if (!container && options.force && container.error().code() == Code::not_found) return 0;
  if (!container) return container.take_error();
  Status status = TRY(container->status());
  if (!options.force && (status == Status::running || status == Status::paused))
    return not_in(*container, status, "stopped; delete --force ends it");
  TRY(destroy(containers, *container));
  return 0;
}

Result<int> pause(const Options& options) {
  Container container = TRY(find_to_change(options));
  Status status = TRY(container.status());
  if (status != Status::running && status != Status::created) return not_in(container, status, "running");
  cgroup::Container cgroup = TRY(container.find_cgroup());
  TRY(cgroup.freeze(kFreezeTimeout).wrap("freeze the cgroup"));
  return 0;
}

Result<int> resume(const Options& options) {
  Container container = TRY(find_to_change(options));
  Status status = TRY(container.status());
  if (status != Status::paused) return not_in(container, status, "paused");
  cgroup::Container cgroup = TRY(container.find_cgroup());
  TRY(cgroup.thaw(kFreezeTimeout).wrap("thaw the cgroup"));
  return 0;
}

Result<int> update(const Options& options) {
  Container container = TRY(find_to_change(options));
  Status status = TRY(container.status());
  if (status == Status::stopped) return not_in(container, status, "running");
  oci::Resources resources = TRY(changed_resources(options, container.saved().resources));
  cgroup::Container cgroup = TRY(container.find_cgroup());
  TRY(cgroup.update(resources, cgroup::Unenforceable::warn_on_v1, container.saved().version));
  for (const std::string& warning : cgroup.warnings()) warn(warning);
  container.saved().resources = std::move(resources);
  TRY(container.save());
  return 0;
}

}  // namespace coracle::cli

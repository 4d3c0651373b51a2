// SPDX-License-Identifier: Apache-2.0
// See health.h.
#include "ctl/health.h"

#include <poll.h>

#include <chrono>

#include "ctl/command.h"
#include "ctl/escape.h"
#include "ctl/print.h"
#include "ctl/wait.h"
#include "runtime/base/text.h"

namespace coracle::ctl {
namespace {

constexpr const char* kHealthTimeout = "10s";  // of one request: a daemon that hangs is not healthy
constexpr int kLookAgainMs = 500;

// "store, scheduler" of the lines "[-]store failed: …".
std::string failed_checks(std::string_view report) {
  std::vector<std::string> names;
  for (std::string_view line : split(report, '\n')) {
    line = trim(line);
    const size_t at = line.find("[-]");
    if (at == line.npos) continue;
    line = line.substr(at + 3);
    names.emplace_back(line.substr(0, line.find(' ')));
  }
  return join(names, ", ");
}

std::string with_message(const std::string& what, const json::value& from) {
  std::string reason(get_string(from, "reason")), message = one_line(get_string(from, "message"));
  return what + (reason.empty() ? "" : ": " + reason) + (message.empty() ? "" : ": " + message);
}

void judge_node(const json::value& node, std::vector<std::string>& problems) {
  const std::string name = "node " + std::string(get_string(node, "metadata.name"));
  bool is_ready = false;
  for (const json::value& condition : get_array(node, "status.conditions")) {
    const std::string_view type = get_string(condition, "type");
    const bool holds = get_string(condition, "status") == "True";
    if (type == "Ready" && holds) is_ready = true;
    if (type == "Ready" && !holds) problems.push_back(with_message(name + " is not ready", condition)), is_ready = true;
    if (holds && type.ends_with("Pressure")) problems.push_back(with_message(name + ": " + std::string(type), condition));
  }
  if (!is_ready) problems.push_back(name + " is not ready: it has not said that it is");
}

// Why a pod is not ready: what its first container that does not run waits for, or what its condition says.
std::string pod_reason(const json::value& pod) {
  for (const char* list : {"status.initContainerStatuses", "status.containerStatuses"})
    for (const json::value& container : get_array(pod, list)) {
      const std::string name(get_string(container, "name"));
      if (const json::value* waiting = find(container, "state.waiting")) return with_message(name + " waits", *waiting);
      const json::value* ended = find(container, "state.terminated");
      if (ended && get_int(*ended, "exitCode") != 0) return with_message(name + " ended", *ended);
    }
  for (const json::value& condition : get_array(pod, "status.conditions"))
    if (get_string(condition, "status") != "True" && !get_string(condition, "message").empty())
      return with_message(std::string(get_string(condition, "type")), condition);
  return "not ready";
}

void judge_pod(const json::value& pod, std::vector<std::string>& problems) {
  const std::string_view phase = get_string(pod, "status.phase");
  if (phase == "Succeeded" || find(pod, "metadata.deletionTimestamp")) return;
  const std::string name =
      "pod " + std::string(get_string(pod, "metadata.namespace")) + "/" + std::string(get_string(pod, "metadata.name"));
  if (phase == "Failed") {
    // One that a controller has replaced, or a Job counts, is not missed.
    if (get_array(pod, "metadata.ownerReferences").empty())
      problems.push_back(with_message(name + " failed", *find(pod, "status")));
    return;
  }
  bool is_ready = false;
  for (const json::value& condition : get_array(pod, "status.conditions"))
    is_ready |= get_string(condition, "type") == "Ready" && get_string(condition, "status") == "True";
  if (!is_ready) problems.push_back(name + ": " + pod_reason(pod));
}

HealthState look(Commands& commands, bool with_pods) {
  HealthState state;
  auto session = commands.session();
  if (!session) return {session.error(), {}, {}, {}};
  auto ready = (*session)->text({.path = "/readyz", .query = {{"verbose", ""}}, .accept = "*/*"});
  if (!ready) state.not_ready = ready.error();
  auto list = [&](const schema::KindInfo& kind, json::value& into) {
    auto all = (*session)->json({.path = (*session)->path(kind, "")});
    if (all) into = *std::move(all);
    else if (!state.unreadable) state.unreadable = all.error();
  };
  list(schema::catalog().of(kNode), state.nodes);
  if (with_pods) list(schema::catalog().of(kPod), state.pods);
  return state;
}

std::string shown(const std::vector<std::string>& problems, bool as_json) {
  if (as_json) {
    json::array list;
    for (const std::string& each : problems) list.push_back(json::string(each));
    return to_pretty(json::object{{"healthy", problems.empty()}, {"problems", std::move(list)}}) + "\n";
  }
  return problems.empty() ? "healthy\n" : join(problems, "\n") + "\n";
}

struct HealthFlags {
  bool wait = false, pods = false;
  std::string timeout = "60s", output;
};

}  // namespace

std::vector<std::string> health_problems(const HealthState& state) {
  std::vector<std::string> problems;
  if (state.not_ready) {
    const std::string failed = failed_checks(state.not_ready->text());
    problems.push_back(failed.empty() ? "the API: " + one_line(state.not_ready->text()) : "the API is not ready: " + failed);
    if (failed.empty()) return problems;  // the rest would say the same
  }
  if (state.unreadable) problems.push_back("the API: " + one_line(state.unreadable->text()));
  for (const json::value& node : get_array(state.nodes, "items")) judge_node(node, problems);
  if (!state.unreadable && get_array(state.nodes, "items").empty()) problems.push_back("there is no node yet");
  for (const json::value& pod : get_array(state.pods, "items")) judge_pod(pod, problems);
  return problems;
}

void add_health(Commands& commands) {
  auto flags = std::make_shared<HealthFlags>();
  Command health = commands.add("health", "Whether this machine's Kubernetes works: exit code 0, or 1 with the reasons");
  health.add_flag("--wait", flags->wait, "until it does, for as long as --timeout says");
  health.add_option("--timeout", flags->timeout, "how long --wait waits");
  health.add_flag("--pods", flags->pods, "all pods too: those that should run are ready");
  health.add_option("-o,--output", flags->output, "json").one_of({"json"});
  commands.on(health, [&commands, flags]() -> Result<int> {
    auto timeout = TRY(parse_timeout(flags->timeout));
    if (commands.flags().request_timeout == "0") commands.flags().request_timeout = kHealthTimeout;
    const auto until = std::chrono::steady_clock::now() + timeout;
    for (;;) {
      const std::vector<std::string> problems = health_problems(look(commands, flags->pods));
      // There may be no server yet that could tell of a change.
      if (flags->wait && !problems.empty() && std::chrono::steady_clock::now() < until) {
        (void)::poll(nullptr, 0, kLookAgainMs);
        continue;
      }
      out(visible_lines(shown(problems, flags->output == "json")));
      return problems.empty() ? 0 : 1;
    }
  });
}

}  // namespace coracle::ctl

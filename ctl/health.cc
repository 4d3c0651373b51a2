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
#include "store/kinds/meta/conditions.h"
#include "store/kinds/meta/metadata.h"

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

// `from`: a view that has a reason and a message.
template <typename T>
std::string with_message(const std::string& what, T from) {
  std::string reason(from.reason()), message = one_line(from.message());
  return what + (reason.empty() ? "" : ": " + reason) + (message.empty() ? "" : ": " + message);
}

void judge_node(const json::value& node, std::vector<std::string>& problems) {
  const std::string name = "node " + std::string(metadata_of(node).name());
  bool is_ready = false;
  for (view::NodeCondition condition : view::Node(node).status().conditions()) {
    const std::string_view type = condition.type();
    const bool holds = condition.status() == "True";
    if (type == "Ready" && holds) is_ready = true;
    if (type == "Ready" && !holds) problems.push_back(with_message(name + " is not ready", condition)), is_ready = true;
    if (holds && type.ends_with("Pressure")) problems.push_back(with_message(name + ": " + std::string(type), condition));
  }
  if (!is_ready) problems.push_back(name + " is not ready: it has not said that it is");
}

// Why a pod is not ready: what its first container that does not run waits for, or what its condition says.
std::string pod_reason(view::PodStatus status) {
  for (const auto& list : {status.init_container_statuses(), status.container_statuses()})
    for (view::ContainerStatus container : list) {
      const std::string name(container.name());
      if (view::ContainerStateWaiting waiting = container.state().waiting()) return with_message(name + " waits", waiting);
      view::ContainerStateTerminated ended = container.state().terminated();
      if (ended.exit_code() != 0) return with_message(name + " ended", ended);
    }
  for (view::PodCondition condition : status.conditions())
    if (condition.status() != "True" && !condition.message().empty())
      return with_message(std::string(condition.type()), condition);
  return "not ready";
}

void judge_pod(const json::value& pod, std::vector<std::string>& problems) {
  const view::ObjectMeta metadata = metadata_of(pod);
  const view::PodStatus status = view::Pod(pod).status();
  if (status.phase() == "Succeeded" || metadata.has_deletion_timestamp()) return;
  const std::string name = "pod " + std::string(metadata.namespace_()) + "/" + std::string(metadata.name());
  if (status.phase() == "Failed") {
    // One that a controller has replaced, or a Job counts, is not missed.
    if (metadata.owner_references().empty()) problems.push_back(with_message(name + " failed", status));
    return;
  }
  if (!has_true_condition(pod, "Ready")) problems.push_back(name + ": " + pod_reason(status));
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
  for (const json::value& node : items_of(state.nodes)) judge_node(node, problems);
  if (!state.unreadable && items_of(state.nodes).empty()) problems.push_back("there is no node yet");
  for (const json::value& pod : items_of(state.pods)) judge_pod(pod, problems);
  return problems;
}

void add_health(Commands& commands) {
  auto flags = std::make_shared<HealthFlags>();
  Command health = commands.add("health", "Whether this machine's Kubernetes works: exit code 0, or 1 with the reasons");
  health.add_flag("--wait", flags->wait, "until it does, for as long as --timeout says");
  health.add_option("--timeout", flags->timeout, "how long --wait waits").as_duration();
  health.add_flag("--pods", flags->pods, "all pods too: those that should run are ready");
  health.add_option("-o,--output", flags->output, "json").one_of({"json"});
  commands.on(health, [&commands, flags]() -> Result<int> {
    auto timeout = TRY(parse_timeout(flags->timeout).wrap("--timeout"));
    if (commands.flags().request_timeout == "0") commands.flags().request_timeout = kHealthTimeout;
    commands.flags().over_network = true;
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

// SPDX-License-Identifier: Apache-2.0
// See pods.h.
#include "ctl/pods.h"

#include <algorithm>
#include <utility>

#include "ctl/command.h"
#include "ctl/wait.h"
#include "runtime/base/text.h"
#include "store/kinds/meta/metadata.h"
#include "store/kinds/pod/pod_state.h"

namespace coracle::ctl {

const json::value* selector_of(const json::value& object) { return view::Deployment(object).spec().selector().pointer(); }

std::string selector_text(const json::value& selector) {
  const json::object* object = selector.if_object();
  if (!object) return {};
  std::vector<std::pair<std::string, std::string>> requirements;  // by key, which orders them
  bool structured = object->contains("matchLabels") || object->contains("matchExpressions");
  view::LabelSelector given(selector);
  const json::object& labels = structured ? given.match_labels() : *object;
  for (const auto& [key, value] : labels)
    requirements.emplace_back(key, std::string(key) + "=" + (value.is_string() ? std::string(value.get_string()) : ""));
  for (view::LabelSelectorRequirement expression : given.match_expressions()) {
    std::string key(expression.key()), op(expression.operator_());
    std::vector<std::string> values(expression.values().begin(), expression.values().end());
    std::sort(values.begin(), values.end());
    if (op == "Exists") requirements.emplace_back(key, key);
    else if (op == "DoesNotExist") requirements.emplace_back(key, "!" + key);
    else requirements.emplace_back(key, key + (op == "In" ? " in (" : " notin (") + join(values, ",") + ")");
  }
  std::stable_sort(requirements.begin(), requirements.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> parts;
  for (auto& [key, text] : requirements) parts.push_back(std::move(text));
  return join(parts, ",");
}

Result<std::vector<json::value>> pods_by_selector(Session& session, const std::string& ns, const std::string& selector) {
  const schema::KindInfo& kind = schema::catalog().of(kPod);
  json::value list = TRY(session.json({.path = session.path(kind, ns), .query = {{"labelSelector", selector}}}));
  const json::array& items = items_of(list);
  return std::vector<json::value>(items.begin(), items.end());
}

namespace {

// What the order of pods depends on. Times are RFC 3339 in UTC, all of one form.
struct PodRank {
  bool is_unassigned, is_unready;
  int phase;
  std::string_view leaving_since, ready_since, created;
  std::pair<int64_t, int64_t> restarts;  // of the container that restarted most, and of such a sidecar
};

int phase_rank(std::string_view phase, PodUse use) {
  if (phase == "Running") return 0;
  if (phase == "Unknown") return 1;
  if (phase == "Pending") return 2;
  return use == PodUse::logs ? 0 : 2;  // it has ended: its log is as good as any
}

PodRank rank_of(const json::value& object, PodUse use) {
  view::Pod pod(object);
  view::PodStatus status = pod.status();
  PodRank rank{.is_unassigned = pod.spec().node_name().empty(),
               .is_unready = !is_ready(pod),
               .phase = phase_rank(status.phase(), use),
               .leaving_since = pod.metadata().deletion_timestamp(),
               .ready_since = {},
               .created = pod.metadata().creation_timestamp(),
               .restarts = {}};
  if (!rank.is_unready) rank.ready_since = pod_condition(pod, "Ready")->last_transition_time();
  for (view::ContainerStatus container : status.container_statuses())
    rank.restarts.first = std::max(rank.restarts.first, int64_t(container.restart_count()));
  for (view::ContainerStatus container : status.init_container_statuses())
    for (view::Container declared : pod.spec().init_containers())
      if (declared.name() == container.name() && declared.restart_policy() == "Always")
        rank.restarts.second = std::max(rank.restarts.second, int64_t(container.restart_count()));
  return rank;
}

bool is_earlier(std::string_view a, std::string_view b) {  // no time comes last
  return a.empty() || b.empty() ? !a.empty() && b.empty() : a < b;
}

bool comes_before(const PodRank& a, const PodRank& b, PodUse use) {
  if (a.is_unassigned != b.is_unassigned) return b.is_unassigned;
  if (a.phase != b.phase) return a.phase < b.phase;
  if (a.is_unready != b.is_unready) return b.is_unready;
  if (use == PodUse::attach && a.leaving_since != b.leaving_since)  // who stays, then who was told last
    return a.leaving_since.empty() || (!b.leaving_since.empty() && a.leaving_since > b.leaving_since);
  if (a.ready_since != b.ready_since) return is_earlier(a.ready_since, b.ready_since);
  if (a.restarts != b.restarts) return (a.restarts > b.restarts) == (use == PodUse::logs);
  return is_earlier(a.created, b.created);
}

// The kinds whose pods kubectl finds. Others have a selector at the same place too, for something else.
bool has_pods(const Kind& kind) {
  for (const Kind& one : {kDeployment, kReplicaSet, kStatefulSet, kDaemonSet, kReplicationController, kJob, kService})
    if (kind == one) return true;
  return false;
}

// Why an object has no pods; "" if it may have some.
std::string no_pods_of(const Named& named, const json::value& object) {
  const json::value* selector = selector_of(object);
  const json::object* fields = selector ? selector->if_object() : nullptr;
  if (named.kind->kind == kService && (!fields || fields->empty()))  // an empty one would be of all pods
    return "invalid service '" + named.name + "': Service is defined without a selector";
  if (has_pods(named.kind->kind) && fields) return {};
  return "selector for *" + std::string(named.kind->kind.version) + "." + std::string(named.kind->kind.kind) + " not implemented";
}

// The pods that the labels select, as soon as there are some.
Result<std::vector<json::value>> awaited_pods(Session& session, const std::string& labels, std::chrono::milliseconds patience) {
  std::vector<json::value> found = TRY(pods_by_selector(session, session.ns(), labels));
  if (!found.empty() || patience.count() <= 0) return found;
  Result<void> come = wait_for_any(session, schema::catalog().of(kPod), session.ns(), labels, patience);
  if (!come) return come.take_error();
  return pods_by_selector(session, session.ns(), labels);
}

}  // namespace

void order_pods(std::vector<json::value>& pods, PodUse use) {
  std::vector<std::pair<PodRank, size_t>> ranks;
  for (size_t i = 0; i < pods.size(); ++i) ranks.emplace_back(rank_of(pods[i], use), i);
  std::ranges::stable_sort(ranks, [&](const auto& a, const auto& b) { return comes_before(a.first, b.first, use); });
  std::vector<json::value> ordered;
  for (const auto& [rank, at] : ranks) ordered.push_back(std::move(pods[at]));
  pods = std::move(ordered);
}

Result<std::vector<json::value>> pods_named(Session& session, const std::vector<std::string>& args, PodUse use,
                                            std::chrono::milliseconds patience) {
  const schema::KindInfo& pods = schema::catalog().of(kPod);
  Named named{&pods, args.front()};
  if (args.front().find('/') != std::string::npos || (args.size() > 1 && schema::catalog().by_name(args.front()))) {
    std::vector<Named> parsed = TRY(parse_named(args));
    named = parsed.front();
  }
  json::value object = TRY(session.json({.path = session.path(*named.kind, session.ns(), named.name)}));
  if (named.kind->kind == kPod) return std::vector{std::move(object)};
  if (std::string why = no_pods_of(named, object); !why.empty())
    return Error(Code::bad_request, std::string(use == PodUse::logs ? "cannot get the logs from *" : "cannot attach to *") +
                                        std::string(named.kind->kind.version) + "." + std::string(named.kind->kind.kind) + ": " +
                                        why);
  std::string labels = selector_text(*selector_of(object));
  std::vector<json::value> found = TRY(awaited_pods(session, labels, patience));
  if (found.empty())
    return Error(Code::not_found, "no pods found with labels " + coracle::quoted(labels) + " in namespace " + session.ns());
  order_pods(found, use);
  return found;
}

Result<json::value> one_pod(Session& session, const std::vector<std::string>& args, PodUse use,
                            std::chrono::milliseconds patience) {
  std::vector<json::value> found = TRY(pods_named(session, args, use, patience));
  if (use == PodUse::logs && found.size() > 1)
    tell("Found " + std::to_string(found.size()) + " pods, using pod/" + std::string(metadata_of(found.front()).name()) + "\n");
  return std::move(found.front());
}

namespace {

std::string_view marked_container(const json::value& pod) {
  const json::value* mark = metadata_of(pod).annotations().if_contains("kubectl.kubernetes.io/default-container");
  return mark && mark->is_string() ? std::string_view(mark->get_string()) : std::string_view();
}

}  // namespace

view::Container container_of_pod(const json::value& pod, std::string_view name) {
  view::PodSpec spec = view::Pod(pod).spec();
  for (const json::array* list : {&spec.containers().raw(), &spec.init_containers().raw(), &spec.ephemeral_containers().raw()})
    for (const auto& one : *list)
      if (view::Container container(one); container.name() == name) return container;
  return {};
}

bool is_debug_container(const json::value& pod, std::string_view name) {
  view::Range<view::EphemeralContainer> all = view::Pod(pod).spec().ephemeral_containers();
  return std::ranges::any_of(all, [&](view::EphemeralContainer one) { return one.name() == name; });
}

view::ContainerState container_state_of(const json::value& pod, std::string_view name) {
  view::PodStatus status = view::Pod(pod).status();
  for (const auto& list : {status.init_container_statuses(), status.container_statuses(), status.ephemeral_container_statuses()})
    for (view::ContainerStatus container : list)
      if (container.name() == name) return container.state();
  return {};
}

namespace {

std::string names_in_pod(const json::value& pod) {
  view::PodSpec spec = view::Pod(pod).spec();
  std::vector<std::string> names;
  auto add = [&](auto containers, const char* kind) {
    for (auto container : containers) names.push_back(std::string(container.name()) + kind);
  };
  add(spec.containers(), "");
  add(spec.ephemeral_containers(), " (ephem)");
  add(spec.init_containers(), " (init)");
  return join(names, ", ");
}

Result<view::Container> named_container(const json::value& pod, std::string_view name) {
  if (view::Container found = container_of_pod(pod, name)) return found;
  return Error(Code::bad_request, "container " + std::string(name) + " is not valid for pod " +
                                      std::string(metadata_of(pod).name()) + " out of: " + names_in_pod(pod));
}

Result<view::Container> first_container(const json::value& pod, bool quiet) {
  view::PodSpec spec = view::Pod(pod).spec();
  view::Range<view::Container> containers = spec.containers();
  if (containers.empty())
    return Error(Code::bad_request, "pod " + std::string(metadata_of(pod).namespace_()) + "/" +
                                        std::string(metadata_of(pod).name()) + " does not have any containers");
  bool alone = containers.size() == 1 && spec.init_containers().empty() && spec.ephemeral_containers().empty();
  if (!quiet && !alone)
    tell("Defaulted container " + coracle::quoted(containers[0].name()) + " out of: " + names_in_pod(pod) + "\n");
  return containers[0];
}

}  // namespace

Result<view::Container> choose_container(const json::value& pod, const std::string& name, bool quiet) {
  std::string_view wanted = name.empty() ? marked_container(pod) : std::string_view(name);
  return wanted.empty() ? first_container(pod, quiet) : named_container(pod, wanted);
}

Result<view::Container> choose_log_container(const json::value& pod, const std::string& name, bool quiet) {
  if (!name.empty()) return named_container(pod, name);
  std::string_view marked = marked_container(pod);
  if (view::Container found = marked.empty() ? view::Container() : container_of_pod(pod, marked)) return found;
  if (!marked.empty())
    tell("Default container name " + coracle::quoted(marked) + " not found in pod " + std::string(metadata_of(pod).name()) +
         "\n");
  return first_container(pod, quiet);
}

std::string session_ended(const std::string& ns, const std::string& pod, const std::string& container, bool is_ephemeral) {
  std::string line = "'coraclectl attach " + pod + " -c " + container + " -n " + ns + " -i -t'";
  if (is_ephemeral)
    return "Session ended, the ephemeral container will not be restarted but may be reattached using " + line +
           " if it is still running\n";
  return "Session ended, resume using " + line + " command\n";
}

Result<std::optional<int>> exit_code_of(const json::value& pod, std::string_view container) {
  view::PodStatus pod_status = view::Pod(pod).status();
  if (pod_status.phase() == "Succeeded") return std::optional<int>(0);
  if (pod_status.phase() != "Failed") return std::optional<int>();
  for (view::ContainerStatus status : pod_status.container_statuses()) {
    if (status.name() != container) continue;
    if (int64_t code = status.state().terminated().exit_code(); code != 0) return std::optional<int>(int(code));
  }
  return Error(Code::internal, "pod " + std::string(metadata_of(pod).namespace_()) + "/" + std::string(metadata_of(pod).name()) +
                                   " failed with unknown exit code");
}

}  // namespace coracle::ctl

// SPDX-License-Identifier: Apache-2.0
// See pods.h.
#include "ctl/pods.h"

#include <algorithm>

#include "ctl/command.h"
#include "ctl/wait.h"
#include "runtime/base/text.h"
#include "store/kinds/meta/metadata.h"

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
  std::vector<json::value> pods(items.begin(), items.end());
  std::ranges::stable_partition(pods, [](const json::value& pod) { return view::Pod(pod).status().phase() == "Running"; });
  return pods;
}

namespace {

// The pods that the labels select, as soon as there are some.
Result<std::vector<json::value>> awaited_pods(Session& session, const std::string& labels, std::chrono::milliseconds patience) {
  std::vector<json::value> found = TRY(pods_by_selector(session, session.ns(), labels));
  if (!found.empty() || patience.count() <= 0) return found;
  Result<void> come = wait_for_any(session, schema::catalog().of(kPod), session.ns(), labels, patience);
  if (!come) return come.take_error();
  return pods_by_selector(session, session.ns(), labels);
}

}  // namespace

Result<json::value> one_pod(Session& session, const std::vector<std::string>& args, bool tells_which,
                            std::chrono::milliseconds patience) {
  const schema::KindInfo& pods = schema::catalog().of(kPod);
  Named named{&pods, args.front()};
  if (args.front().find('/') != std::string::npos || (args.size() > 1 && schema::catalog().by_name(args.front()))) {
    std::vector<Named> parsed = TRY(parse_named(args));
    named = parsed.front();
  }
  json::value object = TRY(session.json({.path = session.path(*named.kind, session.ns(), named.name)}));
  if (named.kind->kind == kPod) return object;
  const json::value* selector = selector_of(object);
  if (!selector) {
    std::string type =
        "*" + std::string(named.kind->kind.version) + "." + std::string(named.kind->kind.kind);  // Go's, as kubectl
    std::string why = "selector for " + type + " not implemented";
    if (named.kind->kind == kService) why = "invalid service '" + named.name + "': Service is defined without a selector";
    return Error(Code::bad_request, (tells_which ? "cannot get the logs from " : "cannot attach to ") + type + ": " + why);
  }
  std::string labels = selector_text(*selector);
  std::vector<json::value> found = TRY(awaited_pods(session, labels, patience));
  if (found.empty())
    return Error(Code::not_found, "no pods found with labels " + coracle::quoted(labels) + " in namespace " + session.ns());
  if (tells_which && found.size() > 1)
    std::fprintf(stderr, "Found %zu pods, using pod/%s\n", found.size(), std::string(metadata_of(found.front()).name()).c_str());
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

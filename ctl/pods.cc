// SPDX-License-Identifier: Apache-2.0
// See pods.h.
#include "ctl/pods.h"

#include <algorithm>

#include "ctl/command.h"
#include "ctl/wait.h"
#include "runtime/base/text.h"
#include "store/kinds/meta/metadata.h"

namespace coracle::ctl {

std::string selector_text(const json::value& selector) {
  const json::object* object = selector.if_object();
  if (!object) return {};
  std::vector<std::pair<std::string, std::string>> requirements;  // by key, which orders them
  bool structured = object->contains("matchLabels") || object->contains("matchExpressions");
  const json::object& labels = structured ? get_object(selector, "matchLabels") : *object;
  for (const auto& [key, value] : labels)
    requirements.emplace_back(key, std::string(key) + "=" + (value.is_string() ? std::string(value.get_string()) : ""));
  for (const auto& expression : get_array(selector, "matchExpressions")) {
    std::string key(get_string(expression, "key")), op(get_string(expression, "operator"));
    std::vector<std::string> values = get_strings(expression, "values");
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
  std::stable_sort(pods.begin(), pods.end(), [](const json::value& a, const json::value& b) {
    return (get_string(a, "status.phase") == "Running") > (get_string(b, "status.phase") == "Running");
  });
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
  const json::value* selector = find(object, "spec.selector");
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
  const json::value* mark = find_keys(pod, {"metadata", "annotations", "kubectl.kubernetes.io/default-container"});
  return mark && mark->is_string() ? std::string_view(mark->get_string()) : std::string_view();
}

const json::value* container_of_pod(const json::value& pod, std::string_view name) {
  for (const char* list : {"spec.containers", "spec.initContainers", "spec.ephemeralContainers"})
    for (const auto& container : get_array(pod, list))
      if (get_string(container, "name") == name) return &container;
  return nullptr;
}

std::string names_in_pod(const json::value& pod) {
  std::vector<std::string> names;
  for (const auto& [list, kind] : {std::pair("spec.containers", ""), std::pair("spec.ephemeralContainers", " (ephem)"),
                                   std::pair("spec.initContainers", " (init)")})
    for (const auto& container : get_array(pod, list)) names.push_back(std::string(get_string(container, "name")) + kind);
  return join(names, ", ");
}

Result<const json::value*> named_container(const json::value& pod, std::string_view name) {
  if (const json::value* found = container_of_pod(pod, name)) return found;
  return Error(Code::bad_request, "container " + std::string(name) + " is not valid for pod " +
                                      std::string(metadata_of(pod).name()) + " out of: " + names_in_pod(pod));
}

Result<const json::value*> first_container(const json::value& pod, bool quiet) {
  const json::array& containers = get_array(pod, "spec.containers");
  if (containers.empty())
    return Error(Code::bad_request, "pod " + std::string(metadata_of(pod).namespace_()) + "/" +
                                        std::string(metadata_of(pod).name()) + " does not have any containers");
  bool alone = containers.size() == 1 && get_array(pod, "spec.initContainers").empty() &&
               get_array(pod, "spec.ephemeralContainers").empty();
  if (!quiet && !alone)
    tell("Defaulted container " + coracle::quoted(get_string(containers.front(), "name")) + " out of: " + names_in_pod(pod) +
         "\n");
  return &containers.front();
}

}  // namespace

Result<const json::value*> choose_container(const json::value& pod, const std::string& name, bool quiet) {
  std::string_view wanted = name.empty() ? marked_container(pod) : std::string_view(name);
  return wanted.empty() ? first_container(pod, quiet) : named_container(pod, wanted);
}

Result<const json::value*> choose_log_container(const json::value& pod, const std::string& name, bool quiet) {
  if (!name.empty()) return named_container(pod, name);
  std::string_view marked = marked_container(pod);
  if (const json::value* found = marked.empty() ? nullptr : container_of_pod(pod, marked)) return found;
  if (!marked.empty())
    tell("Default container name " + coracle::quoted(marked) + " not found in pod " + std::string(metadata_of(pod).name()) +
         "\n");
  return first_container(pod, quiet);
}

Result<std::optional<int>> exit_code_of(const json::value& pod, std::string_view container) {
  std::string_view phase = get_string(pod, "status.phase");
  if (phase == "Succeeded") return std::optional<int>(0);
  if (phase != "Failed") return std::optional<int>();
  for (const auto& status : get_array(pod, "status.containerStatuses")) {
    if (get_string(status, "name") != container) continue;
    if (int64_t code = get_int(status, "state.terminated.exitCode"); code != 0) return std::optional<int>(int(code));
  }
  return Error(Code::internal, "pod " + std::string(metadata_of(pod).namespace_()) + "/" + std::string(metadata_of(pod).name()) +
                                   " failed with unknown exit code");
}

}  // namespace coracle::ctl

// SPDX-License-Identifier: Apache-2.0
// See pods.h.
#include "ctl/pods.h"

#include <algorithm>

#include "ctl/wait.h"
#include "runtime/base/text.h"

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
  const json::array& items = get_array(list, "items");
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
    std::fprintf(stderr, "Found %zu pods, using pod/%s\n", found.size(),
                 std::string(get_string(found.front(), "metadata.name")).c_str());
  return std::move(found.front());
}

Result<const json::value*> choose_container(const json::value& pod, const std::string& name, bool quiet) {
  std::string wanted = name.empty() ? default_container(pod) : name;
  std::vector<std::string> names;
  const json::value* found = nullptr;
  for (const auto& [list, kind] : {std::pair("spec.containers", ""), std::pair("spec.initContainers", " (init)"),
                                   std::pair("spec.ephemeralContainers", " (ephem)")})
    for (const auto& container : get_array(pod, list)) {
      names.push_back(std::string(get_string(container, "name")) + kind);
      if (get_string(container, "name") == wanted) found = &container;
    }
  if (!found)
    return Error(Code::bad_request, "container " + wanted + " is not valid for pod " +
                                        std::string(get_string(pod, "metadata.name")) + " out of: " + join(names, ", "));
  bool marked = find_keys(pod, {"metadata", "annotations", "kubectl.kubernetes.io/default-container"}) != nullptr;
  if (name.empty() && !quiet && !marked && names.size() > 1)
    std::fprintf(stderr, "Defaulted container \"%s\" out of: %s\n", wanted.c_str(), join(names, ", ").c_str());
  return found;
}

Result<std::optional<int>> exit_code_of(const json::value& pod, std::string_view container) {
  std::string_view phase = get_string(pod, "status.phase");
  if (phase == "Succeeded") return std::optional<int>(0);
  if (phase != "Failed") return std::optional<int>();
  for (const auto& status : get_array(pod, "status.containerStatuses")) {
    if (get_string(status, "name") != container) continue;
    if (int64_t code = get_int(status, "state.terminated.exitCode"); code != 0) return std::optional<int>(int(code));
  }
  return Error(Code::internal, "pod " + std::string(get_string(pod, "metadata.namespace")) + "/" +
                                   std::string(get_string(pod, "metadata.name")) + " failed with unknown exit code");
}

std::string default_container(const json::value& pod) {
  const json::value* named = find_keys(pod, {"metadata", "annotations", "kubectl.kubernetes.io/default-container"});
  if (named && named->is_string()) return std::string(named->get_string());
  const json::array& containers = get_array(pod, "spec.containers");
  return containers.empty() ? std::string() : std::string(get_string(containers.front(), "name"));
}

}  // namespace coracle::ctl

// SPDX-License-Identifier: Apache-2.0
// See config_view.h.
#include "ctl/config_view.h"

#include <algorithm>
#include <initializer_list>
#include <vector>

#include "runtime/base/text.h"
#include "runtime/sys/file.h"
#include "store/client/kubeconfig.h"

namespace coracle::ctl {
namespace {

constexpr const char* kOmitted = "DATA+OMITTED";
constexpr const char* kRedacted = "REDACTED";

// Members in kubectl's order; those that are shown when they are empty, too.
struct MemberOrder {
  std::vector<const char*> names, always;
};

const MemberOrder& order_of(std::string_view list) {
  static const MemberOrder cluster{{"server", "tls-server-name", "insecure-skip-tls-verify", "certificate-authority",
                                    "certificate-authority-data", "proxy-url", "disable-compression", "extensions"},
                                   {"server"}};
  static const MemberOrder context{{"cluster", "user", "namespace", "extensions"}, {"cluster", "user"}};
  static const MemberOrder user{
      {"client-certificate", "client-certificate-data", "client-key", "client-key-data", "token", "tokenFile", "as", "as-uid",
       "as-groups", "as-user-extra", "username", "password", "auth-provider", "exec", "extensions"},
      {}};
  return list == "clusters" ? cluster : list == "contexts" ? context : user;
}

bool is_empty(const json::value& value) {
  if (const auto* text = value.if_string()) return text->empty();
  if (const auto* flag = value.if_bool()) return !*flag;
  if (const auto* list = value.if_array()) return list->empty();
  if (const auto* object = value.if_object()) return object->empty();
  return value.is_null();
}

// What a plugin's entry means where it says nothing.
json::value ordered_exec(const json::value& exec) {
  json::object shown{{"command", get_string(exec, "command")}, {"args", nullptr}, {"env", nullptr}};
  for (const char* list : {"args", "env"})
    if (const json::value* found = find(exec, list); found && !is_empty(*found)) shown[list] = *found;
  shown["apiVersion"] = get_string(exec, "apiVersion");
  if (std::string_view hint = get_string(exec, "installHint"); !hint.empty()) shown["installHint"] = hint;
  shown["provideClusterInfo"] = get_bool(exec, "provideClusterInfo");
  std::string_view mode = get_string(exec, "interactiveMode"), version = get_string(exec, "apiVersion");
  bool old = version == "client.authentication.k8s.io/v1beta1" || version == "client.authentication.k8s.io/v1alpha1";
  if (mode.empty() && old) mode = "IfAvailable";  // which v1 wants to be told
  if (!mode.empty()) shown["interactiveMode"] = mode;
  for (const auto& [name, value] : exec.get_object())
    if (!shown.contains(name)) shown[name] = value;
  return shown;
}

json::value ordered_provider(const json::value& provider) {
  json::object shown{{"name", get_string(provider, "name")}, {"config", nullptr}};
  for (const auto& [name, value] : provider.get_object())
    if (!is_empty(value)) shown[name] = value;
  return shown;
}

json::value ordered_body(const json::value& body, std::string_view list) {
  const MemberOrder& order = order_of(list);
  json::object shown;
  auto stands_in = [](const std::vector<const char*>& names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (const char* name : order.names) {
    const json::value* value = body.is_object() ? body.get_object().if_contains(name) : nullptr;
    if (value && std::string_view(name) == "exec" && value->is_object()) shown[name] = ordered_exec(*value);
    else if (value && std::string_view(name) == "auth-provider" && value->is_object()) shown[name] = ordered_provider(*value);
    else if (value && !is_empty(*value)) shown[name] = *value;
    else if (stands_in(order.always, name)) shown[name] = "";
  }
  if (body.is_object())
    for (const auto& [name, value] : body.get_object())
      if (!stands_in(order.names, name)) shown[name] = value;
  return shown;
}

json::value ordered_list(const json::value& config, const KubeconfigList& list) {
  std::vector<const json::value*> entries;
  for (const auto& entry : get_array(config, list.list)) entries.push_back(&entry);
  std::sort(entries.begin(), entries.end(), [](auto* a, auto* b) { return get_string(*a, "name") < get_string(*b, "name"); });
  json::array shown;
  for (const auto* entry : entries) {
    const json::value* body = find(*entry, list.field);
    shown.push_back(json::object{{"name", get_string(*entry, "name")},
                                 {list.field, ordered_body(body ? *body : json::value(json::object()), list.list)}});
  }
  return shown.empty() ? json::value() : json::value(std::move(shown));
}

// Calls `act` with the object of each entry of a list.
template <typename F>
Result<void> for_each_body(json::value& config, const KubeconfigList& list, F&& act) {
  json::value* entries = config.get_object().if_contains(list.list);
  if (!entries || !entries->is_array()) return {};
  for (auto& entry : entries->get_array())
    if (json::value* body = entry.is_object() ? entry.get_object().if_contains(list.field) : nullptr; body && body->is_object())
      TRY(act(body->get_object()));
  return {};
}

Result<void> flatten_file(json::object& body, const std::string& field) {
  json::value* path = body.if_contains(field);
  if (!path || !path->is_string() || path->get_string().empty()) return {};
  if (!get_string(json::value(body), field + "-data").empty())
    return Error(Code::invalid, "cannot have values for both path and contents");
  auto content = sys::read_file(std::string(path->get_string()));
  if (!content && content.error().err() == ENOENT)
    return Error(Code::not_found, "open " + std::string(path->get_string()) + ": no such file or directory");
  if (!content) return content.take_error();
  body.erase(field);
  body[field + "-data"] = base64_encode(*content);
  return {};
}

void hide(json::object& body, const char* field, const char* instead) {
  if (json::value* value = body.if_contains(field); value && !is_empty(*value)) *value = instead;
}

}  // namespace

Result<void> minify_kubeconfig(json::value& config) {
  std::string current(get_string(config, "current-context"));
  if (current.empty()) return Error(Code::invalid, "current-context must exist in order to minify");
  const json::value* found = kubeconfig_entry(config, kKubeconfigLists[1], current);
  if (!found) return Error(Code::invalid, "cannot locate context " + current);
  std::string cluster(get_string(*found, "cluster")), user(get_string(*found, "user"));
  if (!cluster.empty() && !kubeconfig_entry(config, kKubeconfigLists[0], cluster))
    return Error(Code::invalid, "cannot locate cluster " + cluster);
  if (!user.empty() && !kubeconfig_entry(config, kKubeconfigLists[2], user))
    return Error(Code::invalid, "cannot locate user " + user);
  for (const auto& [list, name] : {std::pair{"clusters", &cluster}, std::pair{"contexts", &current}, std::pair{"users", &user}}) {
    json::array kept;
    for (const auto& entry : get_array(config, list))
      if (!name->empty() && get_string(entry, "name") == *name) kept.push_back(entry);
    config.get_object()[list] = std::move(kept);
  }
  return {};
}

Result<void> flatten_kubeconfig(json::value& config) {
  TRY(for_each_body(config, kKubeconfigLists[0],
                    [](json::object& cluster) { return flatten_file(cluster, "certificate-authority"); }));
  return for_each_body(config, kKubeconfigLists[2], [](json::object& user) -> Result<void> {
    TRY(flatten_file(user, "client-certificate"));
    return flatten_file(user, "client-key");
  });
}

void redact_kubeconfig(json::value& config) {
  (void)for_each_body(config, kKubeconfigLists[0], [](json::object& cluster) -> Result<void> {
    hide(cluster, "certificate-authority-data", kOmitted);
    return {};
  });  // hiding cannot fail
  (void)for_each_body(config, kKubeconfigLists[2], [](json::object& user) -> Result<void> {
    hide(user, "client-certificate-data", kOmitted);
    hide(user, "client-key-data", kOmitted);
    hide(user, "token", kRedacted);
    hide(user, "password", kRedacted);
    return {};
  });  // likewise
}

json::value ordered_kubeconfig(const json::value& config) {
  json::object shown{{"kind", "Config"}, {"apiVersion", "v1"}};
  if (const json::value* preferences = find(config, "preferences"); preferences && !is_empty(*preferences))
    shown["preferences"] = *preferences;
  for (size_t i : {0, 2, 1}) shown[kKubeconfigLists[i].list] = ordered_list(config, kKubeconfigLists[i]);
  shown["current-context"] = get_string(config, "current-context");
  for (const auto& [name, value] : config.get_object())
    if (!shown.contains(name) && name != "preferences") shown[name] = value;
  return shown;
}

}  // namespace coracle::ctl

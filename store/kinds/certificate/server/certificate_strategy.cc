// SPDX-License-Identifier: Apache-2.0
// CertificateSigningRequests: the server records the requester; the spec is immutable; /approval writes the conditions Approved
// and Denied, /status the rest of the status. Source: apiserver registry/certificates strategy.
#include <map>
#include <utility>

#include "store/kinds/strategy.h"

namespace coracle::kinds {
namespace {

json::array strings(const std::vector<std::string>& all) {
  json::array out;
  for (const std::string& text : all) out.emplace_back(text);
  return out;
}

void record_user(json::value& object, const User* user) {
  json::value& spec = make(object, "spec");
  if (!spec.is_object()) spec.emplace_object();
  json::object& fields = spec.get_object();
  for (std::string_view name : {"username", "uid", "groups", "extra"}) fields.erase(name);
  if (!user) return;
  fields["username"] = user->name;
  if (!user->uid.empty()) fields["uid"] = user->uid;
  if (!user->groups.empty()) fields["groups"] = strings(user->groups);
  if (user->extra.empty()) return;
  json::object& extra = fields["extra"].emplace_object();
  for (const auto& [key, values] : user->extra) extra[key] = strings(values);
}

void keep_spec(json::value& object, const json::value& old) {
  if (const json::value* spec = find(old, "spec")) object.get_object()["spec"] = *spec;
}

std::vector<json::value*> of_type(json::value& object, std::string_view type) {
  std::vector<json::value*> out;
  json::value* conditions = const_cast<json::value*>(find(object, "status.conditions"));
  if (!conditions || !conditions->is_array()) return out;
  for (json::value& condition : conditions->get_array())
    if (get_string(condition, "type") == type) out.push_back(&condition);
  return out;
}

// A condition with unchanged type and status keeps its transition time.
void fill_times(json::value& object, const json::value& old, WallTime now) {
  json::value* conditions = const_cast<json::value*>(find(object, "status.conditions"));
  if (!conditions || !conditions->is_array()) return;
  std::map<std::pair<std::string_view, std::string_view>, std::string_view> since;  // by type and status
  for (const json::value& before : get_array(old, "status.conditions")) {
    std::string_view time = get_string(before, "lastTransitionTime");
    if (!time.empty()) since[{get_string(before, "type"), get_string(before, "status")}] = time;
  }
  for (json::value& condition : conditions->get_array()) {
    if (!condition.is_object()) continue;
    json::object& fields = condition.get_object();
    if (get_string(condition, "lastUpdateTime").empty()) fields["lastUpdateTime"] = format_time(now);
    if (!get_string(condition, "lastTransitionTime").empty()) continue;
    auto known = since.find({get_string(condition, "type"), get_string(condition, "status")});
    fields["lastTransitionTime"] = known == since.end() ? json::value(format_time(now)) : json::value(known->second);
  }
}

// Reduces the status to what this subresource may write. Added or removed conditions of the other one stay, so that validation
// rejects them.
void divide_status(json::value& object, const json::value& old, std::string_view subresource, WallTime now) {
  if (subresource == "approval") {
    if (const json::value* certificate = find(old, "status.certificate")) make(object, "status.certificate") = *certificate;
    else if (const json::value* status = find(object, "status"); status && status->is_object())
      make(object, "status").get_object().erase("certificate");
    return fill_times(object, old, now);
  }
  json::value before = old;
  for (std::string_view type : {"Approved", "Denied"}) {
    auto has = of_type(object, type), had = of_type(before, type);
    if (has.size() != had.size()) continue;
    for (size_t i = 0; i < has.size(); ++i) *has[i] = *had[i];
  }
  fill_times(object, old, now);
}

}  // namespace

extern const StrategyFamily certificate_strategies;
const StrategyFamily certificate_strategies{{{.kind = &kCertificateSigningRequest,
                                              .record_user = record_user,
                                              .prepare_update = keep_spec,
                                              .divide_status = divide_status}}};

}  // namespace coracle::kinds

// SPDX-License-Identifier: Apache-2.0
// CertificateSigningRequests: the server records the requester; the spec is immutable; /approval writes the conditions Approved
// and Denied, /status the rest of the status. Source: apiserver registry/certificates strategy.
#include <map>
#include <utility>

#include "store/kinds/strategy.h"
#include "store/schema/members.h"
#include "store/schema/views.h"

namespace coracle::kinds {
namespace {

void record_user(json::value& object, const User* user) {
  json::object& fields = make_object(object, "spec");
  for (std::string_view name : {"username", "uid", "groups", "extra"}) fields.erase(name);
  if (!user) return;
  fields["username"] = user->name;
  if (!user->uid.empty()) fields["uid"] = user->uid;
  if (!user->groups.empty()) fields["groups"] = array_of(user->groups);
  if (user->extra.empty()) return;
  json::object& extra = fields["extra"].emplace_object();
  for (const auto& [key, values] : user->extra) extra[key] = array_of(values);
}

void keep_spec(json::value& object, const json::value& old) {
  if (const json::value* spec = view::CertificateSigningRequest(old).spec().pointer()) object.get_object()["spec"] = *spec;
}

// Null: it has none.
json::array* conditions_in(json::value& request) {
  json::object* status = schema::object_at(request.get_object(), "status");
  return status ? schema::array_at(*status, "conditions") : nullptr;
}

std::vector<json::value*> of_type(json::value& object, std::string_view type) {
  std::vector<json::value*> out;
  json::array* conditions = conditions_in(object);
  if (!conditions) return out;
  for (json::value& condition : *conditions)
    if (view::CertificateSigningRequestCondition(condition).type() == type) out.push_back(&condition);
  return out;
}

// A condition with unchanged type and status keeps its transition time.
void fill_times(json::value& object, const json::value& old, WallTime now) {
  json::array* conditions = conditions_in(object);
  if (!conditions) return;
  std::map<std::pair<std::string_view, std::string_view>, std::string_view> since;  // by type and status
  for (view::CertificateSigningRequestCondition before : view::CertificateSigningRequest(old).status().conditions()) {
    std::string_view time = before.last_transition_time();
    if (!time.empty()) since[{before.type(), before.status()}] = time;
  }
  for (json::value& one : *conditions) {
    if (!one.is_object()) continue;
    json::object& fields = one.get_object();
    view::CertificateSigningRequestCondition condition(one);
    if (condition.last_update_time().empty()) fields["lastUpdateTime"] = format_time(now);
    if (!condition.last_transition_time().empty()) continue;
    auto known = since.find({condition.type(), condition.status()});
    fields["lastTransitionTime"] = known == since.end() ? json::value(format_time(now)) : json::value(known->second);
  }
}

// Reduces the status to what this subresource may write. Added or removed conditions of the other one stay, so that validation
// rejects them.
void divide_status(json::value& object, const json::value& old, std::string_view subresource, WallTime now) {
  if (subresource == "approval") {
    view::CertificateSigningRequestStatus status = view::CertificateSigningRequest(old).status();
    if (status.has_certificate()) make(object, "status.certificate") = status.certificate();
    else if (json::object* written = schema::object_at(object.get_object(), "status")) written->erase("certificate");
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

// SPDX-License-Identifier: Apache-2.0
// See heartbeat.h.
#include "daemon/registry/heartbeat.h"

namespace coracle::registry {
namespace {

void erase(json::value* from, std::string_view member) {
  if (from && from->is_object()) from->get_object().erase(member);
}

json::value without_times(const Kind& kind, json::value object) {
  auto member = [](json::value& of, std::string_view name) {
    auto* there = of.if_object();
    return there ? there->if_contains(name) : nullptr;
  };
  json::value* metadata = member(object, "metadata");
  erase(metadata, "resourceVersion");
  erase(metadata, "managedFields");  // its fields follow from the rest, its times from the write
  if (kind == kLease) erase(member(object, "spec"), "renewTime");
  json::value* status = kind == kNode ? member(object, "status") : nullptr;
  json::value* conditions = status ? member(*status, "conditions") : nullptr;
  if (conditions && conditions->is_array())
    for (json::value& condition : conditions->get_array()) erase(&condition, "lastHeartbeatTime");
  return object;
}

}  // namespace

bool is_heartbeat(const Kind& kind, const json::value& before, const json::value& after) {
  if (!(kind == kLease) && !(kind == kNode)) return false;
  return without_times(kind, before) == without_times(kind, after);
}

}  // namespace coracle::registry

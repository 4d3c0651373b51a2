// SPDX-License-Identifier: Apache-2.0
// See heartbeat.h.
#include "daemon/registry/heartbeat.h"

namespace coracle::registry {
namespace {

// `path` such as "status.conditions[].lastHeartbeatTime".
void erase_everywhere(json::value& from, std::string_view path) {
  const size_t dot = path.find('.');
  std::string_view name = path.substr(0, dot);
  const bool is_list = name.ends_with("[]");
  if (is_list) name.remove_suffix(2);
  json::object* object = from.if_object();
  if (!object) return;
  if (dot == path.npos) {
    object->erase(name);
    return;
  }
  json::value* next = object->if_contains(name);
  if (!next) return;
  if (!is_list) return erase_everywhere(*next, path.substr(dot + 1));
  if (!next->is_array()) return;
  for (json::value& each : next->get_array()) erase_everywhere(each, path.substr(dot + 1));
}

json::value without_heartbeat(json::value object, std::string_view path) {
  erase_everywhere(object, "metadata.resourceVersion");
  erase_everywhere(object, "metadata.managedFields");  // its fields follow from the object, its times from the write
  erase_everywhere(object, path);
  return object;
}

}  // namespace

bool is_heartbeat(const schema::KindInfo& stored, const json::value& before, const json::value& after) {
  std::string_view path = stored.traits.heartbeat;
  return !path.empty() && without_heartbeat(before, path) == without_heartbeat(after, path);
}

}  // namespace coracle::registry

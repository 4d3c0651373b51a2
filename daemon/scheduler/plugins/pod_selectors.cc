// SPDX-License-Identifier: Apache-2.0
// See pod_selectors.h.
#include "daemon/scheduler/plugins/pod_selectors.h"

namespace coracle::scheduler {

std::optional<LabelSelector> default_selector(const Object& pod, const Lister& lister) {
  json::object labels;
  for (const ObjectPtr& service : lister.services_of(pod))
    for (const auto& [key, value] : view::Service(*service).spec().selector()) labels.insert_or_assign(key, value);
  json::value selector = json::object{};
  if (auto owner = pod.controller()) {
    for (const Kind* kind : {&kReplicationController, &kReplicaSet, &kStatefulSet}) {
      if (owner->kind != kind->kind || owner->api_version != kind->api_version()) continue;
      ObjectPtr controller = lister.controller(*kind, {pod.ns(), owner->name});
      if (!controller) continue;
      if (kind == &kReplicationController) {
        for (const auto& [key, value] : view::ReplicationController(*controller).spec().selector())
          labels.insert_or_assign(key, value);
      } else if (view::LabelSelector chosen = view::ReplicaSet(*controller).spec().selector()) {
        selector = chosen.raw();  // a StatefulSet has it in the same place
      }
    }
  }
  // As matchExpressions, because both may require different values of one label, and a map has one value per label.
  json::array& expressions = make_array(selector, "matchExpressions");
  for (const auto& [key, value] : labels)
    expressions.push_back({{"key", key}, {"operator", "In"}, {"values", json::array{value}}});
  auto read = LabelSelector::from_json(&selector);
  if (!read || read->empty()) return std::nullopt;
  return std::move(*read);
}

}  // namespace coracle::scheduler

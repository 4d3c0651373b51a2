// SPDX-License-Identifier: Apache-2.0
// Pods: start as Pending with a quality-of-service class; deletion is graceful. Source: Kubernetes "Pod Quality of Service
// Classes".

#include "store/kinds/pod/profile_annotation.h"
#include "store/kinds/strategy.h"
#include "store/schema/default.h"

namespace coracle::kinds {
namespace {

void forget_status(json::value& object) {
  json::object status{{"phase", "Pending"}, {"qosClass", ""}};
  object.get_object()["status"] = std::move(status);
}

// Merges matchLabelKeys and mismatchLabelKeys of an affinity term or of a spread constraint into its selector, with the pod's
// present values, so that later readers need not know them. A repeated key of matchLabelKeys is merged twice, and validation then
// refuses it, as in Kubernetes. Source: KEP-3633, KEP-3243; registry/core/pod strategy, applyLabelKeysToLabelSelector.
void merge_label_keys(json::value& pod, json::value& term) {
  json::object* object = term.if_object();
  json::value* selector = object ? object->if_contains("labelSelector") : nullptr;
  if (!selector || !selector->is_object()) return;
  for (const auto& [field, op] : {std::pair("matchLabelKeys", "In"), std::pair("mismatchLabelKeys", "NotIn")}) {
    for (const json::value& key : get_array(term, field)) {
      const json::value* value = key.is_string() ? view::Pod(pod).metadata().labels().if_contains(key.get_string()) : nullptr;
      if (!value) continue;
      json::array& expressions = make_array(*selector, "matchExpressions");
      expressions.push_back(json::object{{"key", key}, {"operator", op}, {"values", json::array{*value}}});
    }
  }
}

void merge_label_keys(json::value& pod) {
  if (!view::Pod(pod).spec().topology_spread_constraints().empty())
    for (json::value& constraint : make(pod, "spec.topologySpreadConstraints").get_array()) merge_label_keys(pod, constraint);
  if (!view::Pod(pod).spec().has_affinity()) return;
  for (const char* kind : {"podAffinity", "podAntiAffinity"})
    for (const char* when : {"required", "preferred"}) {
      std::string path = "spec.affinity." + std::string(kind) + "." + when + "DuringSchedulingIgnoredDuringExecution";
      if (get_array(pod, path).empty()) continue;
      for (json::value& term : make(pod, path).get_array()) {
        json::value* weighted = term.is_object() ? term.get_object().if_contains("podAffinityTerm") : nullptr;
        merge_label_keys(pod, weighted ? *weighted : term);
      }
    }
}

// Sets the field for each container whose profile only an annotation names.
void name_app_armor_profiles(json::value& pod) {
  if (view::Pod(pod).metadata().annotations().empty()) return;
  for (std::string_view list : {"spec.initContainers", "spec.containers"}) {
    if (get_array(pod, list).empty()) continue;
    for (json::value& container : make(pod, list).get_array()) {
      std::optional<json::value> field = app_armor_by_annotation(view::Pod(pod), view::Container(container));
      if (field && !field->is_null()) make(container, "securityContext.appArmorProfile") = *std::move(field);
    }
  }
}

Result<void> allocate_create(json::value& pod, const Allocation&) {
  merge_label_keys(pod);
  name_app_armor_profiles(pod);
  make(pod, "status.qosClass") = schema::qos_class(pod);
  if (!view::Pod(pod).spec().scheduling_gates().empty())
    make(pod, "status.conditions") = json::array{{{"type", "PodScheduled"},
                                                  {"status", "False"},
                                                  {"reason", "SchedulingGated"},
                                                  {"message", "Scheduling is blocked due to non-empty scheduling gates"}}};
  return {};
}

// The class was computed when the pod was created, and a status that leaves it out means that one.
void keep_qos_class(json::value& object, const json::value& old, WallTime) {
  std::string_view given = view::Pod(old).status().qos_class();
  if (view::Pod(object).status().qos_class().empty() && !given.empty()) make(object, "status.qosClass") = given;
}

}  // namespace

extern const StrategyFamily pod_strategies;
const StrategyFamily pod_strategies{
    {{.kind = &kPod, .prepare_create = forget_status, .prepare_status = keep_qos_class, .allocate_create = allocate_create}}};

}  // namespace coracle::kinds

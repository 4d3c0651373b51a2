// SPDX-License-Identifier: Apache-2.0
// Defaults of workloads that depend on other fields: limits of rolling updates, apiVersion and kind of a StatefulSet's claims,
// the selector of a ReplicationController. Source: apps/v1, core/v1 API reference.
#include "store/kinds/workload/workload_kinds.h"

namespace coracle::schema {
namespace {

void default_rolling_update(json::object& strategy) {
  if (text_at(strategy, "type") == "RollingUpdate" && unset(strategy, "rollingUpdate", true)) {
    strategy["rollingUpdate"].emplace_object();
  }
}

// Only if the whole strategy is absent; constants are set afterwards.
void default_set_strategy(json::object& spec) {
  json::object* strategy = object_at(spec, "updateStrategy");
  if (!strategy || !unset(*strategy, "type")) return;
  (*strategy)["type"] = "RollingUpdate";
  json::value& rolling = (*strategy)["rollingUpdate"];
  if (!rolling.is_object()) rolling.emplace_object();
}

void default_claim_templates(json::object& spec) {
  json::array* claims = array_at(spec, "volumeClaimTemplates");
  if (!claims) return;
  for (json::value& value : *claims) {
    json::object* claim = value.if_object();
    if (!claim) continue;
    (*claim)["apiVersion"] = "v1";
    (*claim)["kind"] = "PersistentVolumeClaim";
  }
}

void default_stateful_set(json::object& spec) {
  default_set_strategy(spec);
  default_claim_templates(spec);
}

// The template's labels are the default for the selector and the labels.
void default_controller(json::object& controller) {
  json::object *metadata = object_at(controller, "metadata"), *spec = object_at(controller, "spec");
  json::object* pods = spec ? object_at(*spec, "template") : nullptr;
  json::object* template_metadata = pods ? object_at(*pods, "metadata") : nullptr;
  json::object* labels = template_metadata ? object_at(*template_metadata, "labels") : nullptr;
  if (!metadata || !labels || labels->empty()) return;
  json::object copy = *labels;
  json::object* selector = object_at(*spec, "selector");
  if (!selector || selector->empty()) (*spec)["selector"] = copy;
  json::object* own = object_at(*metadata, "labels");
  if (!own || own->empty()) (*metadata)["labels"] = copy;
}

constexpr NamedDefaultRule kWorkloadDefaults[] = {
    {"io.k8s.api.apps.v1.DeploymentStrategy", default_rolling_update},
    {"io.k8s.api.apps.v1.DaemonSetUpdateStrategy", default_rolling_update},
    {"io.k8s.api.apps.v1.StatefulSetSpec", default_stateful_set},
    {"io.k8s.api.core.v1.ReplicationController", default_controller},
};

}  // namespace

std::span<const NamedDefaultRule> workload_defaults() { return kWorkloadDefaults; }

}  // namespace coracle::schema

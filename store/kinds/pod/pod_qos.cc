// SPDX-License-Identifier: Apache-2.0
// The quality-of-service class of a pod, and the status of a new one. Source: Kubernetes, "Pod Quality of Service Classes".
#include "store/kinds/pod/pod_kinds.h"
#include "store/object/quantity.h"
#include "store/schema/default.h"

namespace coracle::schema {
namespace {

struct QosSummary {
  bool anything = false;   // some container has a request or limit for cpu or memory
  bool guaranteed = true;  // all have limits for both and equal requests
};

// `container`: a container, or a pod with resources of its own.
void add_to_qos(const json::value& container, QosSummary& qos) {
  for (std::string_view resource : {"cpu", "memory"}) {
    const json::value* request = find_keys(container, {"resources", "requests", resource});
    const json::value* limit = find_keys(container, {"resources", "limits", resource});
    auto asked = request ? Quantity::from_json(*request) : Quantity();
    auto allowed = limit ? Quantity::from_json(*limit) : Quantity();
    bool asks = asked && !asked->is_zero(), limited = allowed && !allowed->is_zero();
    qos.anything = qos.anything || asks || limited;
    if (!limited || (request && !(asked && *asked == *allowed))) qos.guaranteed = false;
  }
}

}  // namespace

std::string_view qos_class(const json::value& pod) {
  QosSummary qos;
  bool of_pod = !get_object(pod, "spec.resources.requests").empty() || !get_object(pod, "spec.resources.limits").empty();
  if (of_pod) add_to_qos(*find(pod, "spec"), qos);
  for (std::string_view list : {"spec.initContainers", "spec.containers"}) {
    if (of_pod) break;  // pod-level resources override those of containers
    for (const json::value& container : get_array(pod, list)) add_to_qos(container, qos);
  }
  if (!qos.anything) return "BestEffort";
  return qos.guaranteed ? "Guaranteed" : "Burstable";
}

void begin_pod(json::value& pod) {
  json::object status;
  status["phase"] = "Pending";
  status["qosClass"] = qos_class(pod);
  pod.get_object()["status"] = std::move(status);
}

}  // namespace coracle::schema

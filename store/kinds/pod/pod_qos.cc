// SPDX-License-Identifier: Apache-2.0
// The quality-of-service class of a pod, and the status of a new one. Source: Kubernetes, "Pod Quality of Service Classes".
#include "store/kinds/pod/pod_kinds.h"
#include "store/object/quantity.h"
#include "store/schema/default.h"
#include "store/schema/views.h"

namespace coracle::schema {
namespace {

struct QosSummary {
  bool anything = false;   // some container has a request or limit for cpu or memory
  bool guaranteed = true;  // all have limits for both and equal requests
};

// `resources`: those of a container, or a pod's own.
void add_to_qos(view::ResourceRequirements resources, QosSummary& qos) {
  for (std::string_view resource : {"cpu", "memory"}) {
    const json::value* request = resources.requests().if_contains(resource);
    const json::value* limit = resources.limits().if_contains(resource);
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
  view::PodSpec spec = view::Pod(pod).spec();
  view::ResourceRequirements own = spec.resources();
  bool of_pod = !own.requests().empty() || !own.limits().empty();
  if (of_pod) add_to_qos(own, qos);
  for (const auto& list : {spec.init_containers(), spec.containers()}) {
    if (of_pod) break;  // pod-level resources override those of containers
    for (view::Container container : list) add_to_qos(container.resources(), qos);
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

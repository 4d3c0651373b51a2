// SPDX-License-Identifier: Apache-2.0
// The initial state of a new object, whatever the client has sent: an empty status for kinds with a status subresource, a pod
// Pending, a namespace Active with its finalizer. Source: Kubernetes API conventions, "Spec and Status"; "Pod Quality of Service
// Classes".
#include "store/object/quantity.h"
#include "store/schema/decode.h"
#include "store/schema/default.h"
#include "store/schema/defaults/rules.h"

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

void begin_pod(json::value& pod) {
  json::object status;
  status["phase"] = "Pending";
  status["qosClass"] = qos_class(pod);
  pod.get_object()["status"] = std::move(status);
}

void begin_namespace(json::value& object) {
  make(object, "spec.finalizers") = json::array{"kubernetes"};
  json::value& status = make(object, "status");
  status = json::object{{"phase", "Active"}};
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

void begin_life(const KindInfo& kind, json::value& object) {
  if (!object.is_object()) return;
  if (kind.kind == kPod) return begin_pod(object);
  if (kind.kind == kNamespace) return begin_namespace(object);
  if (kind.kind == kNode || !kind.subresource("status")) return;  // a node's status is part of its registration
  const Field* status = kind.type().field("status");
  if (!status || status->form != Form::object) return;
  auto empty = decode(status->type(), json::object());
  if (empty) object.get_object()["status"] = std::move(empty->value);
}

}  // namespace coracle::schema

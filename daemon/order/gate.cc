// SPDX-License-Identifier: Apache-2.0
// The world of start order in the informers. See gate.h.
#include "daemon/order/gate.h"

#include "daemon/quota/disruption.h"
#include "store/object/object.h"
#include "store/schema/views.h"

namespace coracle::order {

Gate::Gate(Informers& informers, Ready ready)
    : informers_(informers), ready_(std::move(ready)), slices_(informers.of(kEndpointSlice)), pods_(informers.of(kPod)) {
  for (const Kind* kind : kKinds) informers_.of(*kind);
}

void Gate::on_change(std::function<void(const std::string& ns)> changed) {
  auto tell = [changed = std::move(changed)](const Informer::Change& change) { changed(change.any().ns()); };
  for (const Kind* kind : kKinds) informers_.of(*kind).on_change(tell);
  slices_.on_change(tell);
}

ObjectPtr Gate::get(const Kind& kind, const Key& key) const { return informers_.of(kind).get(key); }

std::vector<ObjectPtr> Gate::pods(const std::string& ns) const { return pods_.list(ns); }

bool Gate::ready(const Object& pod) const { return ready_ ? ready_(pod) : quota::is_ready(pod); }

bool Gate::has_ready_endpoints(const Key& service) const {
  for (const ObjectPtr& object : slices_.list(service.ns)) {
    const json::value* name = object->labels().if_contains("kubernetes.io/service-name");
    if (!name || !name->is_string() || name->get_string() != service.name) continue;
    for (view::Endpoint endpoint : view::EndpointSlice(*object).endpoints())
      if (!endpoint.conditions().has_ready() || endpoint.conditions().ready()) return true;
  }
  return false;
}

}  // namespace coracle::order

// SPDX-License-Identifier: Apache-2.0
// Kinds that shape the API itself, storage and devices: which of them count generations, what their status begins
// with.
// Source: Kubernetes 1.36, the strategy.go of each kind under pkg/registry; kube-aggregator, apiextensions-apiserver.
#include "daemon/registry/kinds/extension.h"

#include "runtime/base/clock.h"
#include "store/schema/catalog.h"

namespace coracle::registry {
namespace {

struct ExtensionKind {
  std::string_view group, resource;
  bool counts_generations;
};

constexpr ExtensionKind kExtensionKinds[] = {
    {"flowcontrol.apiserver.k8s.io", "flowschemas", true},
    {"flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations", true},
    {"admissionregistration.k8s.io", "mutatingwebhookconfigurations", true},
    {"admissionregistration.k8s.io", "validatingwebhookconfigurations", true},
    {"admissionregistration.k8s.io", "validatingadmissionpolicies", true},
    {"admissionregistration.k8s.io", "validatingadmissionpolicybindings", true},
    {"admissionregistration.k8s.io", "mutatingadmissionpolicies", true},
    {"admissionregistration.k8s.io", "mutatingadmissionpolicybindings", true},
    {"apiextensions.k8s.io", "customresourcedefinitions", true},
    {"apiregistration.k8s.io", "apiservices", false},
    {"resource.k8s.io", "deviceclasses", true},
    {"resource.k8s.io", "resourceslices", true},
};

// A version that this server itself answers for is there at once.
Result<void> mark_local(json::value& object, const Allocation& allocation) {
  const json::value* service = find(object, "spec.service");
  if (service && service->is_object()) return {};
  json::object condition{{"type", "Available"},
                         {"status", "True"},
                         {"lastTransitionTime", format_time(allocation.now)},
                         {"reason", "Local"},
                         {"message", "Local APIServices are always available"}};
  make(object, "status.conditions") = json::array{std::move(condition)};
  return {};
}

// A taint says since when it is there.
void date_taints(json::value& object, WallTime now) {
  json::value* devices = const_cast<json::value*>(find(object, "spec.devices"));
  if (!devices || !devices->is_array()) return;
  for (json::value& device : devices->get_array()) {
    json::value* taints = device.is_object() ? device.get_object().if_contains("taints") : nullptr;
    if (!taints || !taints->is_array()) continue;
    for (json::value& taint : taints->get_array()) {
      if (taint.is_object() && !taint.get_object().contains("timeAdded")) taint.get_object()["timeAdded"] = format_time(now);
    }
  }
}

Result<void> date_new_taints(json::value& object, const Allocation& allocation) {
  date_taints(object, allocation.now);
  return {};
}

Result<void> date_added_taints(json::value& object, const Object&, const Allocation& allocation) {
  date_taints(object, allocation.now);
  return {};
}

std::vector<Strategy> make_extension_strategies() {
  std::vector<Strategy> all;
  for (const ExtensionKind& row : kExtensionKinds) {
    const schema::KindInfo* info = schema::catalog().by_resource(row.group, "v1", row.resource);
    if (!info) continue;  // a test holds the rows to the catalog
    Strategy strategy;
    strategy.kind = &info->kind;
    strategy.deletion.counts_generations = row.counts_generations;
    if (row.resource == "apiservices") strategy.allocate_create = mark_local;
    if (row.resource == "resourceslices")
      strategy.allocate_create = date_new_taints, strategy.allocate_update = date_added_taints;
    if (row.resource == "customresourcedefinitions") {
      strategy.allocate_create = accept_names;
      strategy.allocate_update = accept_changed_names;
      strategy.one_at_a_time = true;  // two may not take one name
    }
    all.push_back(std::move(strategy));
  }
  return all;
}

}  // namespace

std::span<const Strategy> extension_strategies() {
  static const std::vector<Strategy> all = make_extension_strategies();
  return all;
}

}  // namespace coracle::registry

// SPDX-License-Identifier: Apache-2.0
// Services: at rest, the slices and the Endpoints of a name contain exactly the addresses of the selected pods that are ready.
// Source: Kubernetes EndpointSlices; Endpoints.
#include <set>

#include "store/object/selector.h"
#include "tests/simulation/cluster_state.h"

namespace coracle::simulation {
namespace {

using Addresses = std::multiset<std::string>;

std::string text(const Addresses& addresses) {
  std::string out;
  for (const std::string& each : addresses) out += (out.empty() ? "" : ",") + each;
  return "{" + out + "}";
}

class ServiceRule : public Rule {
 public:
  void at_rest(const ClusterState& cluster_state) override {
    for (const ObjectPtr& service : cluster_state.all(kService)) {
      if (get_object(service->json(), "spec.selector").empty()) continue;
      LabelSelector selector = LabelSelector::from_map(get_object(service->json(), "spec.selector"));
      Addresses wanted, sliced, listed;
      for (const ObjectPtr& pod : cluster_state.all(kPod, service->ns()))
        if (selector.matches(*pod) && active(*pod) && ready(*pod)) wanted.emplace(get_string(pod->json(), "status.podIP"));
      for (const ObjectPtr& slice : cluster_state.all(kEndpointSlice, service->ns())) {
        if (slice->label("kubernetes.io/service-name") != service->name()) continue;
        for (const json::value& endpoint : get_array(slice->json(), "endpoints"))
          if (get_bool(endpoint, "conditions.ready"))
            for (const json::value& address : get_array(endpoint, "addresses")) sliced.emplace(address.as_string());
      }
      if (ObjectPtr endpoints = cluster_state.find(kEndpoints, service->key()))
        for (const json::value& subset : get_array(endpoints->json(), "subsets"))
          for (const json::value& address : get_array(subset, "addresses")) listed.emplace(get_string(address, "ip"));
      std::string name = "service: " + describe(*service) + ": ";
      if (sliced != wanted) return cluster_state.violated(name + "slices say " + text(sliced) + ", not " + text(wanted));
      if (listed != wanted) return cluster_state.violated(name + "endpoints say " + text(listed) + ", not " + text(wanted));
    }
  }
};

}  // namespace

std::unique_ptr<Rule> service_rule() { return std::make_unique<ServiceRule>(); }

}  // namespace coracle::simulation

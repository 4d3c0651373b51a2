// SPDX-License-Identifier: Apache-2.0
// Defaults of NetworkPolicies: they apply to ingress, and to egress if there are egress rules. Source: networking.k8s.io/v1 API
// reference.
#include "store/kinds/network/network_kinds.h"

namespace coracle::schema {
namespace {

void default_policy(json::object& policy) {
  json::object* spec = object_at(policy, "spec");
  if (!spec) return;
  json::array* types = array_at(*spec, "policyTypes");
  if (types && !types->empty()) return;
  json::array* egress = array_at(*spec, "egress");
  json::array held{"Ingress"};
  if (egress && !egress->empty()) held.emplace_back("Egress");
  (*spec)["policyTypes"] = std::move(held);
}

constexpr NamedDefaultRule kNetworkDefaults[] = {{"io.k8s.api.networking.v1.NetworkPolicy", default_policy}};

}  // namespace

std::span<const NamedDefaultRule> network_defaults() { return kNetworkDefaults; }

}  // namespace coracle::schema

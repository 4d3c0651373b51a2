// SPDX-License-Identifier: Apache-2.0
// Registers this folder. Ingresses, NetworkPolicies, IPAddresses and ServiceCIDRs.
#include "store/kinds/network/network_kinds.h"

namespace coracle::schema {
namespace {

constexpr KindRules kNetworkKinds[] = {
    {.api_version = "networking.k8s.io/v1",
     .resource = "ingresses",
     .status = check_ingress_status,
     .create = check_ingress_create},
    {.api_version = "networking.k8s.io/v1", .resource = "ingressclasses", .update = check_ingress_class_update},
    {.api_version = "networking.k8s.io/v1", .resource = "ipaddresses", .update = check_address_update},
    {.api_version = "networking.k8s.io/v1", .resource = "servicecidrs", .update = check_service_networks_update},
};

}  // namespace

extern const KindFamily network_family;
const KindFamily network_family{
    .defaults = {network_defaults},
    .validation = {network_rules, ingress_rules},
    .cells = {network_cells},
    .kinds = kNetworkKinds,
};

}  // namespace coracle::schema

// SPDX-License-Identifier: Apache-2.0
// Rules: Ingresses, NetworkPolicies, IPAddresses and ServiceCIDRs.
// kind_family.h says when each is called.
#pragma once

#include "store/schema/kind_family.h"

namespace coracle::schema {

std::span<const NamedDefaultRule> network_defaults();
std::span<const NamedValidationRule> network_rules();
std::span<const NamedValidationRule> ingress_rules();
std::span<const NamedCellRule> network_cells();

void check_ingress_status(const json::value& now, const json::value& before, Findings& out);
void check_ingress_create(const json::value& object, Findings& out);
void check_ingress_class_update(const json::value& now, const json::value& before, std::string_view subresource, Findings& out);
void check_address_update(const json::value& now, const json::value& before, std::string_view subresource, Findings& out);
void check_service_networks_update(const json::value& now, const json::value& before, std::string_view subresource,
                                   Findings& out);

}  // namespace coracle::schema

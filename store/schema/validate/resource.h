// SPDX-License-Identifier: Apache-2.0
// Names and amounts of resources in containers, quotas and limits. Source: Kubernetes "Resource quantities", "Extended
// resources", "Resource Quotas". Pure.
#pragma once

#include <string>
#include <string_view>

#include "store/schema/validate/findings.h"

namespace coracle::schema {

bool is_native_resource(std::string_view name);    // without a domain, or in kubernetes.io's
bool is_extended_resource(std::string_view name);  // example.com/gpu
bool is_huge_pages(std::string_view name);         // hugepages-2Mi
bool is_counted_resource(std::string_view name);   // integer amounts only: pods, services, extended resources
bool may_overcommit(std::string_view name);
bool is_quota_resource(std::string_view name);  // a name without a domain that a ResourceQuota may limit

void check_resource_name(Findings& out, const std::string& path, std::string_view name);
void check_container_resource_name(Findings& out, const std::string& path, std::string_view name);
void check_quota_resource_name(Findings& out, const std::string& path, std::string_view name);
// Must not be negative; must be an integer for counted resources.
void check_resource_amount(Findings& out, const std::string& path, std::string_view name, const json::value& amount);
// For limits, requests or overhead: valid names for containers, and their amounts.
void check_container_resources(Findings& out, const std::string& path, const json::object& amounts);

}  // namespace coracle::schema

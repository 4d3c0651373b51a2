// SPDX-License-Identifier: Apache-2.0
// Names and amounts of resources: what containers, quotas and limits may name. Source: Kubernetes "Resource quantities",
// "Extended resources", "Resource Quotas". Pure.
#pragma once

#include <string>
#include <string_view>

#include "store/schema/validate/findings.h"

namespace coracle::schema {

bool is_native_resource(std::string_view name);    // no domain, or kubernetes.io's
bool is_extended_resource(std::string_view name);  // example.com/gpu
bool is_huge_pages(std::string_view name);         // hugepages-2Mi
bool is_counted_resource(std::string_view name);   // comes in whole numbers: pods, services, extended ones
bool may_overcommit(std::string_view name);
bool is_quota_resource(std::string_view name);  // what a ResourceQuota may limit without a domain

void check_resource_name(Findings& out, const std::string& path, std::string_view name);
void check_container_resource_name(Findings& out, const std::string& path, std::string_view name);
void check_quota_resource_name(Findings& out, const std::string& path, std::string_view name);
// Not negative; whole where it is counted.
void check_resource_amount(Findings& out, const std::string& path, std::string_view name, const json::value& amount);
// Limits, requests or overhead: names that a container may ask for, and their amounts.
void check_container_resources(Findings& out, const std::string& path, const json::object& amounts);

}  // namespace coracle::schema

// SPDX-License-Identifier: Apache-2.0
// Checks that are common to device requests and offers (ResourceClaims and ResourceSlices). Pure.
// Source: Kubernetes 1.36, pkg/apis/resource/validation.
#pragma once

#include <string>
#include <string_view>

#include "store/schema/validate/findings.h"
#include "store/schema/views.h"

namespace coracle::schema {

// [domain/]identifier of attributes and capacities. `with_domain`: the domain is required.
void check_device_name(Findings& out, const std::string& path, std::string_view name, bool with_domain);
void check_pool_name(Findings& out, const std::string& path, std::string_view name);
// `good`, `bad`: the conditions of success and of failure, in the fields bindingConditions and bindingFailureConditions.
void check_binding_conditions(Findings& out, const std::string& path, view::Range<std::string_view> good,
                              view::Range<std::string_view> bad);

}  // namespace coracle::schema

// SPDX-License-Identifier: Apache-2.0
// Default rules: what to fill in where a constant does not do. A rule belongs to a type, and so to every kind that holds
// one: the rule for a Container serves pods and every template of pods. It may add fields anywhere in its object; order
// is restored afterwards, and children are visited after their parent. Pure.
#pragma once

#include <span>
#include <string_view>

#include "runtime/base/json.h"
#include "store/schema/members.h"

namespace coracle::schema {

using DefaultRule = void (*)(json::object& object);

struct NamedDefaultRule {
  std::string_view type;  // OpenAPI name
  DefaultRule rule;
};

std::span<const NamedDefaultRule> pod_defaults();
std::span<const NamedDefaultRule> service_defaults();
std::span<const NamedDefaultRule> workload_defaults();
std::span<const NamedDefaultRule> job_defaults();
std::span<const NamedDefaultRule> autoscaler_defaults();
std::span<const NamedDefaultRule> network_defaults();
std::span<const NamedDefaultRule> limit_defaults();
std::span<const NamedDefaultRule> node_defaults();
std::span<const NamedDefaultRule> namespace_defaults();
std::span<const NamedDefaultRule> secret_defaults();
std::span<const NamedDefaultRule> rbac_defaults();

std::span<const NamedDefaultRule> flow_defaults();
std::span<const NamedDefaultRule> extension_defaults();  // definitions, claims

// Absent or null; with `pointer` false, also "", 0 and false.
bool unset(const json::object& object, std::string_view name, bool pointer = false);

}  // namespace coracle::schema

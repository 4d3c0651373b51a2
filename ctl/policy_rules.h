// SPDX-License-Identifier: Apache-2.0
// Rules of roles (rbac.authorization.k8s.io/v1 PolicyRule): what they have in common, and what one set of them lacks of another.
// Pure.
// Source: kubectl pkg/util/rbac; component-helpers auth/rbac/validation/policy_comparator.go.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/json.h"

namespace coracle::ctl {

struct PolicyRule {
  std::vector<std::string> verbs, api_groups, resources, resource_names, non_resource_urls;
  bool operator==(const PolicyRule&) const = default;
};

PolicyRule policy_rule_of(const json::value& rule);
std::vector<PolicyRule> policy_rules_of(const json::array& rules);
json::array to_json(const std::vector<PolicyRule>& rules);
// As Go's %+v shows it: "{Verbs:[get] APIGroups:[] Resources:[pods] ResourceNames:[] NonResourceURLs:[]}".
std::string go_text(const PolicyRule& rule);
std::string go_list(const std::vector<std::string>& words);  // "[a b]"

// Rules that mean the same together, each with one verb, and one resource or URL.
std::vector<PolicyRule> broken_down(const PolicyRule& rule);
// Rules of one resource that differ in their verbs become one. Sorted as kubectl prints them.
std::vector<PolicyRule> compacted(const std::vector<PolicyRule>& rules);
// What `wanted` allows and `had` does not, broken down.
std::vector<PolicyRule> uncovered(const std::vector<PolicyRule>& had, const std::vector<PolicyRule>& wanted);

// "deployments.apps/scale" of the rule's first resource.
std::string resource_and_group(const PolicyRule& rule);

}  // namespace coracle::ctl

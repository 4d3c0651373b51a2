// SPDX-License-Identifier: Apache-2.0
// Rules: the content of a role. Checks whether a rule covers a request, and whether rules cover other rules, which prevents
// privilege escalation. Pure. Source: Kubernetes "Using RBAC Authorization"; component-helpers auth/rbac/validation (semantics).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "daemon/auth/attributes.h"
#include "runtime/base/json.h"

namespace coracle::auth {

struct Rule {
  std::vector<std::string> verbs, groups, resources, names, urls;  // PolicyRule's fields; "*" is everything
  bool operator==(const Rule&) const = default;
};
using Rules = std::vector<Rule>;

// The `rules` of a Role or ClusterRole.
Rules read_rules(const json::value& role);
json::array write_rules(const Rules& rules);

// Whether the rule allows the request; a rule with names does so only for an object of one of these names.
bool allows(const Rule& rule, const Attributes& asked);
// The same for any name of the object.
bool allows_some(const Rule& rule, const Attributes& asked);

// The part of `wanted` that `held` does not cover, as rules with one verb, one group, one resource and one name each. A rule that
// expands to too many of them is returned unchanged, unless `held` allows everything; then `compared_all` becomes false. Empty:
// all is covered.
Rules uncovered(const Rules& held, const Rules& wanted, bool* compared_all = nullptr);
// Merges rules with one group and one resource by their verbs.
Rules compacted(const Rules& rules);
// {APIGroups:["apps"], Resources:["deployments"], Verbs:["get" "list"]}
std::string describe(const Rule& rule);
// ["a" "b"], Go's format of a list of strings.
std::string describe(const std::vector<std::string>& list);

}  // namespace coracle::auth

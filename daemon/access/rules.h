// SPDX-License-Identifier: Apache-2.0
// Rules: what a role allows, as data. Whether a rule covers a request, and whether some rules cover others, which is what
// keeps anybody from granting more than they have. Pure.
// Source: Kubernetes "Using RBAC Authorization"; component-helpers auth/rbac/validation (semantics).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "daemon/access/attributes.h"
#include "runtime/base/json.h"

namespace coracle::access {

struct Rule {
  std::vector<std::string> verbs, groups, resources, names, urls;  // PolicyRule's fields, "*" is everything
  bool operator==(const Rule&) const = default;
};
using Rules = std::vector<Rule>;

// Of a Role or ClusterRole: its `rules`.
Rules read_rules(const json::value& role);
json::array write_rules(const Rules& rules);

bool allows(const Rule& rule, const Attributes& asked);

// What of `wanted` nothing in `held` covers, as rules of one verb, one group, one resource, one name each; a rule that stands for
// too many of them as it is, unless `held` has everything; `compared_all` becomes false then. Empty: all is covered.
Rules uncovered(const Rules& held, const Rules& wanted, bool* compared_all = nullptr);
// Rules of one group and one resource are put together by their verbs.
Rules compacted(const Rules& rules);
// {APIGroups:["apps"], Resources:["deployments"], Verbs:["get" "list"]}
std::string describe(const Rule& rule);
// ["a" "b"], as Go prints a list of strings.
std::string describe(const std::vector<std::string>& list);

}  // namespace coracle::access

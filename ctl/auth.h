// SPDX-License-Identifier: Apache-2.0
// auth can-i, whoami, reconcile.
#pragma once

#include "ctl/command.h"
#include "ctl/policy_rules.h"

namespace coracle::ctl {

void add_auth(Commands& commands);
void add_auth_reconcile(Commands& commands, Command auth);

// What a role or binding lacks of what a file says, and what it has beyond. Source: component-helpers auth/rbac/reconciliation.
struct Reconciliation {
  enum class Operation { none, create, update, recreate } operation = Operation::none;
  bool is_protected = false;  // its annotation rbac.authorization.kubernetes.io/autoupdate is "false": it is left alone
  json::value object;         // as it is to be
  std::vector<PolicyRule> missing_rules, extra_rules;
  std::vector<json::value> missing_subjects, extra_subjects;
};

// Of a Role or ClusterRole. `existing`: null where there is none. With `remove_extra`, rules that the file does not have go.
// Pure.
Reconciliation reconcile_role(const json::value& existing, const json::value& expected, bool remove_extra);
// Of a RoleBinding or ClusterRoleBinding, likewise; another roleRef makes it anew. Pure.
Reconciliation reconcile_binding(const json::value& existing, const json::value& expected, bool remove_extra);

}  // namespace coracle::ctl

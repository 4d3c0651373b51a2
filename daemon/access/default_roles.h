// SPDX-License-Identifier: Apache-2.0
// The roles and bindings that every cluster begins with, and how they are kept: what is missing is made, rules and subjects
// that are missing are added; nothing that somebody added is taken away, and an object whose annotation
// rbac.authorization.kubernetes.io/autoupdate is "false" is left alone.
// Source: Kubernetes "Default roles and role bindings", 1.36; rbac/bootstrappolicy (facts), registry/rbac/reconciliation.
#pragma once

#include <string>
#include <vector>

#include "daemon/access/rules.h"
#include "daemon/registry/registry.h"

namespace coracle::access {

struct DefaultObject {
  const Kind* kind;
  json::value body;
};

std::vector<DefaultObject> default_roles();          // roles before the bindings that name them
Rules default_rules(std::string_view cluster_role);  // of one of them, {} when there is none

// What `there` needs to hold all of `wanted`; nothing: it does already, or does not want to. Pure.
std::optional<json::value> reconciled(const DefaultObject& wanted, const json::value& there);

// Makes and mends them in the store. Errors: what the store said.
Result<void> ensure_default_roles(registry::Registry& registry);

}  // namespace coracle::access

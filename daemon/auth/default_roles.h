// SPDX-License-Identifier: Apache-2.0
// Creates and maintains the default roles and bindings: missing objects are created, and missing rules and subjects are added.
// Additions by users are kept, and objects with the annotation rbac.authorization.kubernetes.io/autoupdate "false" are not
// changed. Source: Kubernetes "Default roles and role bindings", 1.36; rbac/bootstrappolicy,
// registry/rbac/reconciliation.
#pragma once

#include <string>
#include <vector>

#include "daemon/auth/rules.h"
#include "daemon/registry/registry.h"

namespace coracle::auth {

struct DefaultObject {
  const Kind* kind;
  json::value body;
};

std::vector<DefaultObject> default_roles();          // roles precede the bindings that refer to them
Rules default_rules(std::string_view cluster_role);  // of one default role; {} if there is none

// `there` with everything that `wanted` contains; nullopt if it has all of it already or opts out. Pure.
std::optional<json::value> reconciled(const DefaultObject& wanted, const json::value& there);

// Creates and updates them in the store. Errors: the store's.
Result<void> ensure_default_roles(registry::Registry& registry);

}  // namespace coracle::auth

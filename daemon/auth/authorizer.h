// SPDX-License-Identifier: Apache-2.0
// Authorizer: decides whether a user may perform a request. Members of system:masters may do everything, nodes what their pods
// need, and all users what RBAC grants.
//   User, Attributes ──▶ system:masters | node authorizer | roles ──▶ Decision
// What roles decide is remembered until one of them or a binding changes (decision_memory.h), unless it depends on the object's
// name. The daemon's own components act in process and are not authorized. Thread-safe; a decision takes microseconds. Source:
// Kubernetes "Authorization Overview", "Using RBAC Authorization"; plugin/pkg/auth/authorizer/rbac (texts).
#pragma once

#include "daemon/auth/attributes.h"
#include "daemon/auth/decision_memory.h"
#include "daemon/auth/node_authorizer.h"
#include "daemon/auth/role_index.h"

namespace coracle::auth {

inline constexpr std::string_view kAdministrators = "system:masters", kAuthenticated = "system:authenticated",
                                  kUnauthenticated = "system:unauthenticated", kAnonymous = "system:anonymous",
                                  kServiceAccountPrefix = "system:serviceaccount:";  // followed by NAMESPACE:NAME

class Authorizer {
 public:
  explicit Authorizer(registry::Registry& registry) : roles_(registry.engine()), nodes_(registry) {}
  Decision authorize(const User& user, const Attributes& asked) const;

  struct Held {
    Rules rules;
    std::string error;        // what could not be determined
    bool incomplete = false;  // the rules may be incomplete
  };
  Held rules_for(const User& user, const std::string& ns) const;
  // Errors: not_found.
  Result<Rules> rules_of(const RoleRef& role, const std::string& ns) const { return roles_.rules_of(role, ns); }
  DecisionMemory::Size remembered() const;

 private:
  Decision decide_by_roles(const User& user, const Attributes& asked) const;
  Decision visit_roles(const User& user, const Attributes& asked, bool& depends_on_name) const;
  RoleIndex roles_;
  NodeAuthorizer nodes_;
  mutable Guarded<DecisionMemory> memory_;
};

// The error with Kubernetes' text: pods "x" is forbidden: User "u" cannot get resource "pods" in API group "" in the namespace
// "ns"
Error denial(const User& user, const Attributes& asked, std::string_view reason = {});

// The user of a service account, as SubjectAccessReviews and impersonation name it.
User account_user(std::string_view ns, std::string_view name, std::string_view uid);

}  // namespace coracle::auth

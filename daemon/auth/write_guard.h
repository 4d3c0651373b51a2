// SPDX-License-Identifier: Apache-2.0
// WriteGuard: prevents privilege escalation. A role may only contain permissions that its writer has (or the writer may
// "escalate" it). A binding may only refer to a role whose permissions its writer has (or may "bind"). A certificate request is
// approved and signed only by users with that permission for its signer. An update or apply that creates an object needs the
// permission to create. Source: Kubernetes "Privilege escalation prevention and bootstrapping"; registry/rbac (escalation_check,
// policybased); admission plugins CertificateApproval, CertificateSigning, CertificateSubjectRestriction (rules and texts).
#pragma once

#include "daemon/auth/authorizer.h"
#include "daemon/registry/guard.h"

namespace coracle::auth {

class WriteGuard : public registry::Guard {
 public:
  explicit WriteGuard(const Authorizer& authorizer) : authorizer_(authorizer) {}
  Result<void> check(const registry::GuardedWrite& write) const override;
  Result<void> check_create(const Kind& kind, const Key& key, const User& user) const override;

 private:
  Result<void> check_role(const registry::GuardedWrite& write) const;
  Result<void> check_binding(const registry::GuardedWrite& write) const;
  Result<void> check_certificate_request(const registry::GuardedWrite& write) const;
  Result<void> holds(const registry::GuardedWrite& write, const Rules& rules, const std::string& ns) const;
  bool may_for_signer(const User& user, std::string_view verb, const std::string& signer) const;
  const Authorizer& authorizer_;
};

}  // namespace coracle::auth

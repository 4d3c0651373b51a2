// SPDX-License-Identifier: Apache-2.0
// WriteGuard: nobody grants what they do not have. A role may hold only rules that its writer has (or the writer may
// "escalate" it), a binding may name only a role whose rules its writer has (or may "bind"); a certificate request is
// approved and signed by who may do so for its signer. An update or an apply that creates needs the right to create.
// Source: Kubernetes "Privilege escalation prevention and bootstrapping"; registry/rbac (escalation_check, policybased);
// admission plugins CertificateApproval, CertificateSigning, CertificateSubjectRestriction (rules and words).
#pragma once

#include "daemon/access/authorizer.h"
#include "daemon/registry/guard.h"

namespace coracle::access {

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

}  // namespace coracle::access

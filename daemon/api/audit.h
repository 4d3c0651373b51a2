// SPDX-License-Identifier: Apache-2.0
// Audit of a call: what the policy wants of it is collected while it is answered and written when it arrives, when an
// endless answer begins, and when it is over. Source: Kubernetes "Auditing"; apiserver filters/audit.
#pragma once

#include <memory>

#include "daemon/api/call.h"

namespace coracle::api {

class Auditor {
 public:
  // Without paths nobody listens. Errors: invalid, naming file and field of the policy; what the disk said.
  static Result<std::unique_ptr<Auditor>> open(const access::AuditSettings& settings);

  // `user` is who asks, before impersonation. nullptr: this call is not written down. The record lives as long as the call.
  std::unique_ptr<access::AuditRecord> begin(Call& call, const access::Attributes& asked, WallTime received) const;
  void end(const Call& call, const access::AuditRecord& record) const;
  // A request whose credentials were wrong: one event, of nobody.
  void refused(Call& call, const access::Attributes& asked, WallTime received) const;

 private:
  access::AuditRecord record_of(const Call& call, const access::Attributes& asked, WallTime received) const;
  void write(const access::AuditRecord& record, access::AuditStage stage, WallTime now) const;
  std::optional<access::AuditPolicy> policy_;
  std::unique_ptr<access::AuditLog> log_;
};

}  // namespace coracle::api

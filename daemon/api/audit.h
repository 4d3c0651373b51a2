// SPDX-License-Identifier: Apache-2.0
// Audit of API requests. What the policy requires is collected during the request, and an event is written when the request
// arrives, when a streaming response begins, and when the request is over. Source: Kubernetes "Auditing"; apiserver
// filters/audit.
#pragma once

#include <memory>

#include "daemon/api/call.h"

namespace coracle::api {

class Auditor {
 public:
  // Without paths in the settings there is no audit. Errors: invalid, with file and field of the policy; errors of opening the
  // log file.
  static Result<std::unique_ptr<Auditor>> open(const auth::AuditSettings& settings);

  // Begins the audit of a request. `user` is the requester before impersonation. Returns nullptr if the policy excludes the
  // request. The record lives as long as the call.
  std::unique_ptr<auth::AuditRecord> begin(Call& call, const auth::Attributes& asked, WallTime received) const;
  void end(const Call& call, auth::AuditRecord& record) const;
  // Writes one event, without a user, for a request whose authentication failed.
  void refused(Call& call, const auth::Attributes& asked, WallTime received) const;

 private:
  // nullptr: there is no policy, or it excludes the request. Nothing is copied or allocated then.
  std::unique_ptr<auth::AuditRecord> record_of(const Call& call, const auth::Attributes& asked, WallTime received) const;
  void write(const auth::AuditRecord& record, auth::AuditStage stage, WallTime now) const;
  std::optional<auth::AuditPolicy> policy_;
  std::unique_ptr<auth::AuditLog> log_;
};

}  // namespace coracle::api

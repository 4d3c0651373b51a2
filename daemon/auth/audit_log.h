// SPDX-License-Identifier: Apache-2.0
// Audit log: events as JSON lines in a file of bounded size. A full file is renamed to <path>.1 and so on, and the oldest one is
// deleted. Writes are not synced, to spare the SD card. Thread-safe. Source: Kubernetes "Auditing", log backend; audit.k8s.io/v1
// Event.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "daemon/auth/audit_policy.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/base/guarded.h"

namespace coracle::auth {

struct AuditSettings {
  std::string policy_path, log_path;  // both, or neither: no audit
  size_t file_bytes_max = 10u << 20;
  int backups = 2;
};

class AuditLog {
 public:
  // Errors: of opening the file.
  static Result<std::unique_ptr<AuditLog>> open(AuditSettings settings);
  // Writes a line. If that fails, the line is lost, and the first such error is logged; requests are not affected. Blocks for
  // file I/O.
  void write(std::string_view line);

 private:
  explicit AuditLog(AuditSettings settings) : settings_(std::move(settings)) {}
  struct File {
    Fd fd;
    size_t size = 0;
    bool failed = false;
  };
  Result<void> begin(File& file) const;
  Result<void> turn_over(File& file) const;
  const AuditSettings settings_;
  std::string name_;
  Fd dir_;
  Guarded<File> file_;
};

// The audit data of one request; filled in while it is processed.
struct AuditRecord {
  AuditDecision decision;
  std::string id, uri, source, agent;
  User user;
  std::optional<User> as;  // the impersonated user
  Attributes asked;
  std::string version;  // of the API group
  WallTime received;
  json::value request, response;  // null: not recorded
  int status = 0;
  bool allowed = false;
  std::string reason;                              // of the authorization decision
  std::map<std::string, std::string> annotations;  // of admission
};

// The audit event as a JSON object. Pure.
json::object audit_event(const AuditRecord& record, AuditStage stage, WallTime now);

}  // namespace coracle::auth

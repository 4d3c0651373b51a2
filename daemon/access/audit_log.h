// SPDX-License-Identifier: Apache-2.0
// Audit log: events as lines of JSON in a file that never grows beyond its bound: when it is full it becomes <path>.1, the
// oldest one goes. Nothing is forced to the disk: the card decides when.
// Thread-safe. Source: Kubernetes "Auditing", log backend; audit.k8s.io/v1 Event.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "daemon/access/audit_policy.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/base/guarded.h"

namespace coracle::access {

struct AuditSettings {
  std::string policy_path, log_path;  // both, or neither: no audit
  size_t file_bytes_max = 10u << 20;
  int backups = 2;
};

class AuditLog {
 public:
  // Errors: what the disk said.
  static Result<std::unique_ptr<AuditLog>> open(AuditSettings settings);
  // A failing disk is logged once, and the line is lost: requests go on.
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

// What is known of one request; filled in while it is answered.
struct AuditRecord {
  AuditDecision decision;
  std::string id, uri, source, agent;
  User user;
  std::optional<User> as;  // whom it impersonates
  Attributes asked;
  std::string version;  // of the API group
  WallTime received;
  json::value request, response;  // null: not recorded
  int status = 0;
  bool allowed = false;
  std::string reason;                              // why
  std::map<std::string, std::string> annotations;  // of admission
};

// The event as one object. Pure.
json::object audit_event(const AuditRecord& record, AuditStage stage, WallTime now);

}  // namespace coracle::access

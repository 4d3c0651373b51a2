// SPDX-License-Identifier: Apache-2.0
// Audit log: events as JSON lines in a file of bounded size. A full file is renamed to <path>.1 and so on, and the oldest one is
// deleted. Writes are not synced, to spare the SD card. A request goes on when its line is in the file (Kubernetes' mode
// "blocking"), and requests that come meanwhile share the next write:
//   write ──▶ queue ──▶ leader: all queued lines ▸ rotate ▸ one write ──▶ wakes them; one that came meanwhile is the next leader
// So no lock is held while the card is slow. After a slow write the leader first waits for an eighth of its time: a commit has
// woken many requests at once, and those who come a moment late would wait for two writes. Thread-safe. Source: Kubernetes
// "Auditing", log backend; audit.k8s.io/v1 Event.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/auth/audit_policy.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/base/guarded.h"
#include "runtime/base/wait_once.h"

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
  // Writes a line, after all that were queued before. If that fails, the line is lost; the file keeps whole lines only. The first
  // such error is logged, and the number of lost lines when writing succeeds again. Requests are not affected. Blocks for file
  // I/O.
  void write(std::string_view line);

 private:
  explicit AuditLog(AuditSettings settings) : settings_(std::move(settings)) {}
  struct Waiting {  // one caller of write()
    std::string_view line;
    bool leads = false;  // when it wakes: it is the leader now
    WaitOnce woken;
  };
  struct Queue {
    std::vector<Waiting*> waiting;
    bool led = false;  // there is a leader
  };
  void put(const std::vector<Waiting*>& group);
  Result<void> begin();
  Result<void> rotate();
  Result<void> append(std::string& lines);
  const AuditSettings settings_;
  std::string name_;
  Fd dir_;
  Guarded<Queue> queue_;
  // Of the leader:
  Fd file_;
  size_t size_ = 0;
  std::chrono::nanoseconds last_took_{0};
  bool failed_ = false;
  size_t lost_ = 0;    // lines, since the last write that succeeded
  bool torn_ = false;  // the file ends with a part of a line
};

// The audit data of one request; filled in while it is processed.
struct AuditRecord {
  struct Reference {  // to the object in the request, as it was sent
    std::string name, uid, revision;
  };
  AuditDecision decision;
  std::string id, uri, source, agent;
  UserPtr user, as;        // as: the impersonated user, or null
  std::string constraint;  // of the impersonation, see Impersonated
  Attributes asked;
  std::string version;  // of the API group
  WallTime received;
  Reference sent;
  std::string request, response;  // JSON; "": the decision does not ask for it, or there is none
  json::object told;              // what a Status in the response says
  int status = 0;
  bool allowed = false;
  std::string reason;                              // of the authorization decision
  std::map<std::string, std::string> annotations;  // of admission
};

// Records a body as far as the record's decision asks for it: as text, because the object that it becomes is changed and moved
// on.
void record_request(AuditRecord& record, const json::value& body);
void record_patch(AuditRecord& record, const json::value& patch);  // it is no object: it may have any form
void record_response(AuditRecord& record, const json::value& body);
// Whether the decision asks for the response's body.
bool wants_response(const AuditRecord& record);
// The same as record_response(), for an object, list or table in one line of JSON.
void record_response_text(AuditRecord& record, std::string text);

// The audit event as a line of JSON, without the line break. Pure.
std::string audit_line(const AuditRecord& record, AuditStage stage, WallTime now);

}  // namespace coracle::auth

// SPDX-License-Identifier: Apache-2.0
// See audit.h.
#include "daemon/api/audit.h"

#include "runtime/sys/file.h"

namespace coracle::api {
namespace {

// Source: apiserver audit/request.go, maybeTruncateUserAgent
std::string shortened_agent(std::string_view agent) {
  constexpr size_t kBytesMax = 1024;
  if (agent.size() <= kBytesMax) return std::string(agent);
  return std::string(agent.substr(0, kBytesMax)) + "...TRUNCATED";
}

}  // namespace

Result<std::unique_ptr<Auditor>> Auditor::open(const auth::AuditSettings& settings) {
  auto auditor = std::make_unique<Auditor>();
  if (settings.policy_path.empty() || settings.log_path.empty()) return auditor;
  std::string text = TRY(sys::read_file(settings.policy_path).wrap("read the audit policy"));
  auditor->policy_ = TRY(auth::AuditPolicy::parse(text).wrap(settings.policy_path));
  auditor->log_ = TRY(auth::AuditLog::open(settings));
  return auditor;
}

void Auditor::write(const auth::AuditRecord& record, auth::AuditStage stage, WallTime now) const {
  if (record.decision.wants(stage)) log_->write(auth::audit_line(record, stage, now));
}

std::unique_ptr<auth::AuditRecord> Auditor::record_of(const Call& call, const auth::Attributes& asked, WallTime received) const {
  if (!policy_) return nullptr;
  auth::AuditDecision decision = policy_->decide(*call.user, asked);
  if (decision.level == auth::AuditLevel::none) return nullptr;
  auto out = std::make_unique<auth::AuditRecord>();
  auth::AuditRecord& record = *out;
  record.decision = decision;
  record.id = call.audit_id;
  const Head& head = call.head();
  record.uri = head.path + (head.query_text.empty() ? "" : "?" + head.query_text);
  record.source = call.exchange.connection.peer().address;
  record.agent = shortened_agent(head.headers.get("User-Agent"));
  record.user = call.user;
  record.asked = asked, record.version = call.route.version;
  record.received = received;
  return out;
}

void Auditor::refused(Call& call, const auth::Attributes& asked, WallTime received) const {
  auto record = record_of(call, asked, received);
  if (!record) return;
  record->status = call.answer().status;
  auth::record_response(
      *record,
      json::object{{"kind", "Status"}, {"status", "Failure"}, {"message", "Authentication failed"}, {"reason", "Unauthorized"}});
  write(*record, auth::AuditStage::response_started, call.context.clock.now());
}

std::unique_ptr<auth::AuditRecord> Auditor::begin(Call& call, const auth::Attributes& asked, WallTime received) const {
  auto record = record_of(call, asked, received);
  if (!record) return nullptr;
  write(*record, auth::AuditStage::request_received, call.context.clock.now());
  call.exchange.when_taken = [this, raw = record.get(), &call] {
    raw->status = call.answer().status;
    write(*raw, auth::AuditStage::response_started, call.context.clock.now());
  };
  call.audit = record.get();
  return record;
}

void Auditor::end(const Call& call, auth::AuditRecord& record) const {
  record.status = call.exchange.answer.status;
  write(record, auth::AuditStage::response_complete, call.context.clock.now());
}

}  // namespace coracle::api

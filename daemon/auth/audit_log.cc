// SPDX-License-Identifier: Apache-2.0
// See audit_log.h.
#include "daemon/auth/audit_log.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "daemon/auth/user_info.h"
#include "runtime/base/log.h"
#include "runtime/base/text.h"
#include "runtime/sys/file.h"
#include "runtime/sys/inode.h"
#include "store/kinds/meta/metadata.h"

namespace coracle::auth {
namespace {

constexpr size_t kWriteBytesMax = 256 << 10;  // of several lines together; a single line may be longer
constexpr std::chrono::milliseconds kSlowWrite{20}, kGatherMax{25};

json::object object_ref(const AuditRecord& record) {
  json::object out;
  auto put = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) out[name] = value;
  };
  const Attributes& asked = record.asked;
  put("resource", asked.resource), put("namespace", asked.ns), put("name", asked.name.empty() ? record.sent.name : asked.name);
  put("uid", record.sent.uid), put("resourceVersion", record.sent.revision);
  put("apiGroup", asked.group), put("apiVersion", record.version), put("subresource", asked.subresource);
  return out;
}

constexpr std::string_view kManagedFields = "managedFields";

// Calls `visit` with the metadata of the object, or of the list and its items, or of the objects in a table's rows, until it
// returns true. Returns whether it did.
template <typename Value, typename F>
bool visit_metadata(Value& body, F&& visit) {
  auto visit_one = [&](auto& object) {
    auto* metadata = object.is_object() ? object.get_object().if_contains("metadata") : nullptr;
    return metadata && metadata->is_object() && visit(metadata->get_object());
  };
  auto visit_row = [&](auto& row) {
    auto* object = row.is_object() ? row.get_object().if_contains("object") : nullptr;
    return object && visit_one(*object);
  };
  auto visit_all = [&](std::string_view name, auto&& visit_each) {
    auto* list = body.get_object().if_contains(name);
    if (!list || !list->is_array()) return false;
    auto& all = list->get_array();
    return std::any_of(all.begin(), all.end(), visit_each);
  };
  return body.is_object() && (visit_one(body) || visit_all("items", visit_one) || visit_all("rows", visit_row));
}

bool has_managed_fields(const json::value& body) {
  return visit_metadata(body, [](const json::object& metadata) { return metadata.contains(kManagedFields); });
}

void drop_managed_fields(json::value& body) {
  visit_metadata(body, [](json::object& metadata) {
    metadata.erase(kManagedFields);
    return false;  // all of them
  });
}

std::string text_of_body(const json::value& body, bool omit_managed_fields) {
  if (!omit_managed_fields || !has_managed_fields(body)) return to_text(body);
  json::value shown(body, json::storage_ptr());
  drop_managed_fields(shown);
  return to_text(shown);
}

json::object response_status(const AuditRecord& record) {
  json::object out{{"metadata", json::object()}};
  for (const auto& [field, value] : record.told) out[field] = value;
  out["code"] = record.status;
  return out;
}

bool wants_request(const AuditDecision& decision) {
  bool has_event = decision.wants(AuditStage::response_started) || decision.wants(AuditStage::response_complete);
  return decision.level >= AuditLevel::request && has_event;
}

}  // namespace

void record_request(AuditRecord& record, const json::value& body) {
  if (body.is_object()) {
    view::ObjectMeta metadata = metadata_of(body);
    record.sent = {std::string(metadata.name()), std::string(metadata.uid()), std::string(metadata.resource_version())};
  }
  if (wants_request(record.decision)) record.request = text_of_body(body, record.decision.omit_managed_fields);
}

void record_patch(AuditRecord& record, const json::value& patch) {
  if (wants_request(record.decision)) record.request = to_text(patch);
}

bool wants_response(const AuditRecord& record) {
  return record.decision.level >= AuditLevel::request_response && record.decision.wants(AuditStage::response_complete);
}

void record_response(AuditRecord& record, const json::value& body) {
  if (body.is_object() && kind_in(body) == "Status")
    for (std::string_view field : {"status", "message", "reason", "details"})
      if (const json::value* value = body.get_object().if_contains(field)) record.told[field] = *value;
  if (wants_response(record)) record.response = text_of_body(body, record.decision.omit_managed_fields);
}

void record_response_text(AuditRecord& record, std::string text) {
  if (!wants_response(record)) return;
  bool drops = record.decision.omit_managed_fields && text.find(quoted(kManagedFields)) != text.npos;
  if (!drops) return void(record.response = std::move(text));
  auto body = parse_json(text);
  if (body) record.response = text_of_body(*body, true);
}

std::string audit_line(const AuditRecord& record, AuditStage stage, WallTime now) {
  json::object head{{"kind", "Event"},           {"apiVersion", "audit.k8s.io/v1"}, {"level", text_of(record.decision.level)},
                    {"auditID", record.id},      {"stage", text_of(stage)},         {"requestURI", record.uri},
                    {"verb", record.asked.verb}, {"user", user_info(*record.user)}};
  if (record.as) head["impersonatedUser"] = user_info(*record.as);
  if (!record.constraint.empty()) head["authenticationMetadata"] = json::object{{"impersonationConstraint", record.constraint}};
  if (!record.source.empty()) head["sourceIPs"] = json::array{json::string(record.source)};
  if (!record.agent.empty()) head["userAgent"] = record.agent;
  if (record.asked.is_resource) head["objectRef"] = object_ref(record);
  bool answered = stage != AuditStage::request_received;
  if (answered) head["responseStatus"] = response_status(record);
  json::object tail{{"requestReceivedTimestamp", format_micro_time(record.received)}, {"stageTimestamp", format_micro_time(now)}};
  if (answered && record.status != 401) {
    json::object annotations{{"authorization.k8s.io/decision", record.allowed ? "allow" : "forbid"},
                             {"authorization.k8s.io/reason", record.reason}};
    for (const auto& [key, value] : record.annotations) annotations[key] = value;
    tail["annotations"] = std::move(annotations);
  }
  std::string out = to_text(head), end = to_text(tail);
  out.pop_back();  // its brace
  out.reserve(out.size() + record.request.size() + record.response.size() + end.size() + 64);
  auto put_body = [&](std::string_view name, const std::string& body) {
    if (!body.empty()) out.append(",\"").append(name).append("\":").append(body);
  };
  if (answered) put_body("requestObject", record.request);
  if (stage == AuditStage::response_complete) put_body("responseObject", record.response);
  end[0] = ',';
  return out += end;
}

Result<std::unique_ptr<AuditLog>> AuditLog::open(AuditSettings settings) {
  std::unique_ptr<AuditLog> log(new AuditLog(std::move(settings)));
  size_t slash = log->settings_.log_path.rfind('/');
  if (slash == std::string::npos)
    return Error(Code::invalid, "the audit log's path must be absolute: " + log->settings_.log_path);
  log->name_ = log->settings_.log_path.substr(slash + 1);
  std::string directory = log->settings_.log_path.substr(0, slash + 1);
  TRY(sys::make_directories(directory, 0700).wrap("open the audit log"));
  log->dir_ = TRY(sys::open_directory(directory).wrap("open the audit log"));
  TRY(log->begin().wrap("open the audit log"));
  return log;
}

Result<void> AuditLog::begin() {
  file_ = TRY(sys::open_at(dir_, name_, O_WRONLY | O_CREAT | O_APPEND, 0600));
  struct stat status = TRY(sys::stat(file_));
  size_ = size_t(status.st_size);
  return {};
}

// Renames the files; the next write begins a new one.
Result<void> AuditLog::rotate() {
  file_ = Fd();
  for (int i = settings_.backups; i > 0; --i) {
    std::string from = i == 1 ? name_ : name_ + "." + std::to_string(i - 1);
    auto moved = sys::rename_at(dir_, from, dir_, name_ + "." + std::to_string(i));
    if (!moved && moved.error().code() != Code::not_found) return moved.take_error();
  }
  if (settings_.backups == 0) TRY(sys::unlink_at(dir_, name_));
  size_ = 0;  // even if no new file can be opened: another rotation would move the backups away
  return {};
}

// Appends lines. After an error the file ends with the last whole line that fitted, and `lines` keeps the others.
Result<void> AuditLog::append(std::string& lines) {
  if (!file_) TRY(begin());
  if (torn_) {
    TRY(sys::write_all(file_, "\n"));
    torn_ = false, ++size_;
  }
  auto written = sys::write_all(file_, lines);
  if (written) {
    size_ += lines.size();
    lines.clear();
    return {};
  }
  auto status = sys::stat(file_);
  if (!status || !S_ISREG(status->st_mode) || size_t(status->st_size) <= size_) return written;
  const size_t end = size_t(status->st_size), came = std::min(end - size_, lines.size());
  const size_t whole = lines.rfind('\n', came - 1) + 1;  // 0 if there is none
  torn_ = whole < came && !sys::resize(file_, int64_t(size_ + whole));
  size_ = torn_ ? end : size_ + whole;
  lines.erase(0, whole);
  return written;
}

void AuditLog::write(std::string_view line) {
  Waiting self{line, false, {}};
  bool leads = queue_.with([&](Queue& queue) {
    queue.waiting.push_back(&self);
    return !std::exchange(queue.led, true);
  });
  if (!leads) {
    self.woken.wait();
    if (!self.leads) return;
  }
  auto take = [](Queue& queue) { return std::exchange(queue.waiting, {}); };
  auto never = [](const Queue&) { return false; };
  bool gathers = last_took_ >= kSlowWrite;
  SteadyTime now = std::chrono::steady_clock::now(), later = now + std::min<std::chrono::nanoseconds>(last_took_ / 8, kGatherMax);
  std::vector<Waiting*> group = gathers ? queue_.wait_until({}, later, never, take) : queue_.with(take);
  SteadyTime began = std::chrono::steady_clock::now();
  put(group);
  last_took_ = std::chrono::steady_clock::now() - began;
  Waiting* next = queue_.with([](Queue& queue) {
    queue.led = !queue.waiting.empty();
    return queue.led ? queue.waiting.front() : nullptr;
  });
  if (next) next->leads = true, next->woken.give();
  for (Waiting* each : group)
    if (each != &self) each->woken.give();
}

// Writes the lines of a group, rotating between them where the file is full.
void AuditLog::put(const std::vector<Waiting*>& group) {
  Result<void> done;
  std::string text;
  auto flush = [&] {
    if (text.empty()) return;
    auto written = append(text);
    if (!written) done = written.take_error();
    lost_ += size_t(std::ranges::count(text, '\n'));
    text.clear();
  };
  for (const Waiting* each : group) {
    size_t before = size_ + text.size(), after = before + each->line.size() + 1;
    if (text.size() > kWriteBytesMax || (before > 0 && after > settings_.file_bytes_max)) flush();
    if (size_ > 0 && size_ + text.size() + each->line.size() + 1 > settings_.file_bytes_max) {
      auto rotated = rotate();
      if (!rotated) done = rotated.take_error(), ++lost_;
      if (!rotated) continue;  // the file must not grow
    }
    text.append(each->line) += '\n';
  }
  flush();
  if (!done && !failed_) log_error("auth", "the audit log cannot be written: " + done.error().text());
  if (done && failed_)
    log_notice("auth", "the audit log is written again", {{"lost lines", std::to_string(std::exchange(lost_, 0))}});
  failed_ = !done;
}

}  // namespace coracle::auth

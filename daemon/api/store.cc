// SPDX-License-Identifier: Apache-2.0
// /coracle/v1/store, for `coraclectl backup`, `restore` and `store`: operations on the whole store. Permission to POST here means
// to read every Secret and to replace every object, so only administrators should have it.
//   GET  /coracle/v1/store           its size, and the findings of the latest check
//   POST /coracle/v1/store/backup    the response is the backup        ?keys=false: without certificates and keys
//   POST /coracle/v1/store/restore   the body is the backup            ?keys=false: keep this machine's
//   POST /coracle/v1/store/check, /compact
#include "daemon/api/handlers.h"
#include "runtime/sys/file.h"
#include "store/object/status.h"

namespace coracle::api {
namespace {

constexpr size_t kBackupPieceBytes = 64 << 10;

bool needs_keys(const Call& call) { return call.query().get("keys") != "false"; }

Result<void> send_backup(Call& call) {
  Fd copy = TRY(call.context.config.maintenance->backup(needs_keys(call)));
  ChunkedAnswer answer(call.exchange, "application/vnd.sqlite3", common_headers(call));
  std::string piece(kBackupPieceBytes, '\0');
  for (;;) {
    ssize_t got = ::read(copy.get(), piece.data(), piece.size());
    if (got < 0) return Error::from_errno("read the copy");  // the response stays incomplete, which the client notices
    if (got == 0) break;
    if (!answer.write(std::string_view(piece.data(), size_t(got)))) return {};
  }
  answer.end();
  return {};
}

Result<void> take_backup(Call& call) {
  call.exchange.connection.set_read_deadline(SteadyTime::max());  // no limit for uploads
  json::value restored = TRY(call.context.config.maintenance->restore(
      [&](const auto& take) { return call.exchange.stream_body(take); }, needs_keys(call)));
  ChunkedAnswer answer(call.exchange, "application/json", common_headers(call));
  answer.write(to_text(restored) + "\n");
  answer.end();
  call.context.config.maintenance->start_anew();  // after the response was sent
  return {};
}

Result<void> tell_state(Call& call) {
  json::value state = TRY(call.context.config.maintenance->state());
  answer_value(call, state);
  return {};
}

Result<void> compact(Call& call) {
  TRY(call.context.config.maintenance->compact());
  return tell_state(call);
}

}  // namespace

void serve_store(Call& call) {
  if (!call.context.config.maintenance) return answer_page_not_found(call);
  std::string_view what = std::string_view(call.route.path).substr(std::string_view("/coracle/v1/store").size());
  bool posts = call.head().method == "POST",
       known = what.empty() || what == "/backup" || what == "/restore" || what == "/check" || what == "/compact";
  if (!known) return answer_page_not_found(call);
  if (posts == what.empty() || (!posts && call.head().method != "GET"))
    return answer_error(call, Error(Code::method_not_allowed, "the server does not allow this method on the requested resource"));
  if (what.empty()) return answer_with(call, tell_state(call));
  if (what == "/backup") return answer_with(call, send_backup(call));
  if (what == "/restore") return answer_with(call, take_backup(call));
  if (what == "/compact") return answer_with(call, compact(call));
  json::value checked = call.context.config.maintenance->check();
  answer_value(call, checked);
}

}  // namespace coracle::api

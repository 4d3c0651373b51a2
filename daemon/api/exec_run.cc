// SPDX-License-Identifier: Apache-2.0
// See exec_run.h. Source: apimachinery util/remotecommand; kubelet's remotecommand (texts of the error channel).
#include "daemon/api/exec_run.h"

#include <optional>

#include "daemon/api/upgrade.h"
#include "runtime/base/thread.h"
#include "runtime/sys/socket.h"
#include "store/object/status.h"
#include "store/schema/views.h"

namespace coracle::api {
namespace {

json::value exit_status(int code) {
  if (code == 0) return json::object{{"metadata", json::object()}, {"status", "Success"}};
  json::object cause{{"reason", "ExitCode"}, {"message", std::to_string(code)}};
  return json::object{{"metadata", json::object()},
                      {"status", "Failure"},
                      {"message", "command terminated with non-zero exit code: exit status " + std::to_string(code)},
                      {"reason", "NonZeroExitCode"},
                      {"details", json::object{{"causes", json::array{std::move(cause)}}}}};
}

}  // namespace

ExecRun::ExecRun(PodStreams& streams, const ExecRequest& request, ExecCarrier carrier) : carrier_(std::move(carrier)) {
  auto started = streams.exec(request, carrier_.output);
  std::optional<Error> why;
  if (started) session_ = *std::move(started);
  else why = started.take_error();
  if (session_ && carrier_.read_stdin) feeder_ = start_thread("streams", [this] { feed(); });
  waiter_ = start_thread("streams", [this, why = std::move(why)] { see_out(why); });
}

ExecRun::~ExecRun() {
  left_.with([](bool& left) { left = true; });
  left_.notify();
  if (session_) session_->hang_up();  // makes both threads return, before the session is destroyed
}

void ExecRun::resize(uint16_t width, uint16_t height) {
  if (session_) session_->resize(width, height);
}

void ExecRun::feed() {
  bool reads = true;  // false after the process has stopped reading; further input is discarded
  for (;;) {
    std::optional<std::string> bytes = carrier_.read_stdin();
    if (!bytes) return;
    if (bytes->empty()) return session_->close_stdin();
    reads = reads && session_->write_stdin(*bytes).ok();
  }
}

void ExecRun::see_out(const std::optional<Error>& not_started) {
  carrier_.ended(not_started ? Result<int>(*not_started) : session_->wait());
  left_.wait_until(
      {}, std::chrono::steady_clock::now() + kGoodbye, [](bool left) { return left; }, [](bool) {});
  sys::shut_down(carrier_.socket);  // wakes the receiving thread if the client is still connected
}

std::string exec_end_text(int version, const Result<int>& code) {
  if (version >= 4) return to_text(code ? exit_status(*code) : to_status(code.error()));
  if (!code) return code.error().text();
  if (*code == 0) return "";
  const json::value status = exit_status(*code);
  return std::string(view::Status(status).message());
}

bool apply_size(ExecRun& run, std::string_view text) {
  auto size = parse_json(text);
  if (!size || !size->is_object()) return false;
  run.resize(uint16_t(get_int(*size, "Width")), uint16_t(get_int(*size, "Height")));
  return true;
}

}  // namespace coracle::api

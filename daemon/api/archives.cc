// SPDX-License-Identifier: Apache-2.0
// See archives.h.
#include "daemon/api/archives.h"

#include <optional>
#include <thread>

#include "runtime/base/log.h"
#include "runtime/base/thread.h"
#include "runtime/sys/file.h"

namespace coracle::api {

Result<json::value> receive_archive(Call& call, const std::function<Result<json::value>(const Fd& archive)>& read) {
  sys::Pipe pipe = TRY(sys::make_pipe());
  Result<json::value> answer = Error(Code::internal, "not read");
  std::jthread reader = start_thread("streams", [&, from = std::move(pipe.read)] { answer = read(from); });
  call.exchange.connection.set_read_deadline(SteadyTime::max());  // no limit for archives
  Result<void> written;
  auto sent =
      call.exchange.stream_body([&](std::string_view bytes) { return (written = sys::write_all(pipe.write, bytes)).ok(); });
  pipe.write.reset();  // end of the archive
  reader.join();
  if (!answer) return answer;  // more specific than a broken pipe
  if (!sent) return sent.take_error();
  return answer;
}

Result<void> send_archive(Call& call, const char* type, const char* what,
                          const std::function<Result<void>(const Fd& archive)>& write) {
  sys::Pipe pipe = TRY(sys::make_pipe());
  Result<void> written;
  std::jthread writer = start_thread("streams", [&, to = std::move(pipe.write)]() mutable {
    written = write(to);
    to.reset();
  });
  std::optional<ChunkedAnswer> answer;
  std::string piece(64 << 10, '\0');
  bool is_read = true;
  while (is_read) {
    auto got = sys::read_some(pipe.read, piece);
    if (!got || *got == 0) break;
    if (!answer) answer.emplace(call.exchange, type, common_headers(call));
    is_read = answer->write(std::string_view(piece).substr(0, *got));
  }
  pipe.read.reset();  // a blocked writer gets EPIPE
  writer.join();
  if (!answer) return written;
  if (written) answer->end();
  else if (is_read) log_warning("api", std::string(what) + " was interrupted", {{"error", written.error().text()}});
  return {};
}

}  // namespace coracle::api

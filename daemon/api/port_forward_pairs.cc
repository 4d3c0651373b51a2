// SPDX-License-Identifier: Apache-2.0
// See port_forward_pairs.h.
#include "daemon/api/port_forward_pairs.h"

#include "daemon/api/forward.h"
#include "runtime/base/text.h"
#include "store/object/status.h"

namespace coracle::api {

Result<ForwardStream> read_forward_stream(uint32_t id, std::string_view type, std::string_view port, std::string_view request) {
  if (port.empty()) return bad_request("\"port\" header is required");
  ForwardStream stream;
  stream.port = TRY(read_port(port));
  if (type.empty()) return bad_request("\"streamType\" header is required");
  if (type != "error" && type != "data") return bad_request("invalid stream type " + quoted(type));
  stream.is_error = type == "error";
  stream.request =
      request.empty() ? "stream " + std::to_string(stream.is_error ? id : id - 2) : "request " + std::string(request);
  return stream;
}

StreamPairs::Added StreamPairs::add(uint32_t id, const ForwardStream& stream, SteadyTime now) {
  auto [place, made] = waiting_.try_emplace(stream.request, Waiting{{}, now});
  StreamPair& pair = place->second.pair;
  uint32_t& mine = stream.is_error ? pair.error : pair.data;
  Added added;
  if (mine != 0) {
    added.trouble = "error processing stream for " + stream.request + ": " + (stream.is_error ? "error" : "data") +
                    " stream already assigned";
    added.error_stream = pair.error;
    return added;
  }
  mine = id;
  if (!stream.is_error) pair.port = stream.port;
  if (pair.data == 0 || pair.error == 0) return added;
  added.complete = pair;
  waiting_.erase(place);
  return added;
}

std::vector<StreamPair> StreamPairs::take_overdue(SteadyTime now, std::chrono::milliseconds timeout) {
  std::vector<StreamPair> overdue;
  std::erase_if(waiting_, [&](const auto& entry) {
    bool late = now - entry.second.since >= timeout;
    if (late) overdue.push_back(entry.second.pair);
    return late;
  });
  return overdue;
}

std::string port_greeting(uint16_t port) { return {char(port & 0xff), char(port >> 8)}; }

}  // namespace coracle::api

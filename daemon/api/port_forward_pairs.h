// SPDX-License-Identifier: Apache-2.0
// Pairs the streams or channels of a port-forward: each connection to a port has one for data and one for errors. Pure. Source:
// kubelet's portforward (httpstream.go, websocket.go).
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/api/spdy.h"
#include "runtime/base/clock.h"
#include "runtime/base/result.h"

namespace coracle::api {

// ---- streams ----

struct ForwardStream {  // the headers of a stream
  bool is_error = false;
  uint16_t port = 0;
  std::string request;  // the request id, the same for both streams of a pair
};
// Errors: bad_request, with Kubernetes' text. Old clients send no request id: their error stream comes first, and its number is
// the id.
Result<ForwardStream> read_forward_stream(uint32_t id, std::string_view type, std::string_view port, std::string_view request);

struct StreamPair {
  uint32_t data = 0, error = 0;  // 0: not opened yet
  uint16_t port = 0;
};

class StreamPairs {
 public:
  struct Added {
    std::optional<StreamPair> complete;
    std::string trouble;        // an error, or "": a second stream of the same kind
    uint32_t error_stream = 0;  // the stream to report the error on; 0: none
  };
  Added add(uint32_t id, const ForwardStream& stream, SteadyTime now);
  // The incomplete pairs that are older than `timeout`.
  std::vector<StreamPair> take_overdue(SteadyTime now, std::chrono::milliseconds timeout);

 private:
  struct Waiting {
    StreamPair pair;
    SteadyTime since;
  };
  std::map<std::string, Waiting, std::less<>> waiting_;
};

// ---- channels ----

// Per request; the kubelet has no limit. A channel number is one byte, and a port uses two channels.
constexpr size_t kPortsMax = 64;

// The two channels of the port at `index` in the request.
inline uint8_t data_channel(size_t index) { return uint8_t(2 * index); }
inline uint8_t error_channel(size_t index) { return uint8_t(2 * index + 1); }
// The first message of a channel: its port, little-endian.
std::string port_greeting(uint16_t port);

}  // namespace coracle::api

// SPDX-License-Identifier: Apache-2.0
// Which streams and channels of a port-forward belong together: each connection to a port has one for data and one for errors.
// Pure. Source: kubelet's portforward (httpstream.go, websocket.go).
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

struct ForwardStream {  // what a stream's headers say
  bool is_error = false;
  uint16_t port = 0;
  std::string request;  // what both of a pair have in common
};
// Errors: bad_request, in Kubernetes' words. Clients of old name no request: their error stream comes first, its number counts.
Result<ForwardStream> read_forward_stream(uint32_t id, std::string_view type, std::string_view port, std::string_view request);

struct StreamPair {
  uint32_t data = 0, error = 0;  // 0: has not come yet
  uint16_t port = 0;
};

class StreamPairs {
 public:
  struct Added {
    std::optional<StreamPair> complete;
    std::string trouble;        // not "": a second one of its kind
    uint32_t error_stream = 0;  // where the trouble can be told; 0: nowhere
  };
  Added add(uint32_t id, const ForwardStream& stream, SteadyTime now);
  // Whose partners have not come in time.
  std::vector<StreamPair> take_overdue(SteadyTime now, std::chrono::milliseconds patience);

 private:
  struct Waiting {
    StreamPair pair;
    SteadyTime since;
  };
  std::map<std::string, Waiting, std::less<>> waiting_;
};

// ---- channels ----

constexpr size_t kPortsMax = 64;  // of one request: the kubelet has no limit; a channel's number is a byte, and a port has two

// Two channels for the port that stands at `index` in the request.
inline uint8_t data_channel(size_t index) { return uint8_t(2 * index); }
inline uint8_t error_channel(size_t index) { return uint8_t(2 * index + 1); }
// What a channel begins with: its port, the lower byte first.
std::string port_greeting(uint16_t port);

}  // namespace coracle::api

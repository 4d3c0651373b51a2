// SPDX-License-Identifier: Apache-2.0
// One connection to a pod's port with its two directions, independent of the transport (port_forward_spdy.cc,
// port_forward_websocket.cc).
//   client ──read──▶ a thread ──▶ socket ──▶ the pod's server
//   client ◀──write── a thread ◀── socket ◀── the pod's server
// A half-close on one side is forwarded to the other. The connection is over when both directions have ended. Clients that cannot
// half-close are given kLastWord after the pod has ended, then the connection is over too.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <stop_token>
#include <string>
#include <thread>

#include "daemon/stream/stream.h"
#include "runtime/base/guarded.h"
#include "runtime/sys/socket.h"

namespace coracle::api {

constexpr std::chrono::milliseconds kLastWord{500};  // idle time of a client after the pod has ended. Source: socat's -t

struct ForwardEnds {                             // the client's side; called by Forward's threads
  std::function<std::string()> read;             // blocks; "" at the end or after stop_reading
  std::function<void()> stop_reading;            // makes read return, at once and from then on
  std::function<bool(std::string_view)> write;   // blocks; false: the client accepts no more
  std::function<void()> finish;                  // the pod has closed its sending direction
  std::function<void(std::string_view)> closed;  // the connection is over; the text is the error, or ""
  bool hears_half_closes = false;                // the client notices a half-close and closes its side itself
};

class Forward {
 public:
  Forward(PodStreams& streams, Key pod, std::string pod_uid, uint16_t port, ForwardEnds ends);
  // Ends the connection. `read` must return.
  ~Forward();
  bool over() const { return over_; }

 private:
  struct Progress {
    bool client_ended = false;
    uint64_t heard = 0;  // number of pieces received from the client
  };
  void run();
  Result<void> carry();
  void carry_in(const Fd& socket);
  void carry_out(const Fd& socket);
  void wait_for_last_word();

  PodStreams& streams_;
  const Key pod_;
  const std::string pod_uid_;
  const uint16_t port_;
  ForwardEnds ends_;
  std::stop_source stop_;
  sys::Wakeup wake_;
  Guarded<Progress> progress_;
  std::atomic<bool> over_ = false;
  std::jthread thread_;
};

// Parses a port number, "8080". Errors: bad_request, with Kubernetes' text.
Result<uint16_t> read_port(std::string_view text);

}  // namespace coracle::api

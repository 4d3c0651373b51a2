// SPDX-License-Identifier: Apache-2.0
// One connection to a port of a pod, and its two directions, whatever carries it to the client (port_forward_spdy.cc,
// port_forward_websocket.cc).
//   client ──read──▶ a thread ──▶ socket ──▶ the pod's server
//   client ◀──write── a thread ◀── socket ◀── the pod's server
// Each side's end of sending is carried to the other; the connection is over when both have ended. Clients that cannot close
// their sending while they still hear are given a moment once the pod has ended, then it is over as well.
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

constexpr std::chrono::milliseconds kLastWord{500};  // of a client, after the pod has ended. Source: socat's -t

struct ForwardEnds {                             // how to reach the client; called by Forward's threads
  std::function<std::string()> read;             // blocks; "" at the end, or when it is over
  std::function<void()> stop_reading;            // read returns, from now on at once
  std::function<bool(std::string_view)> write;   // blocks; false: the client wants no more
  std::function<void()> finish;                  // the pod has said all
  std::function<void(std::string_view)> closed;  // it is over; not "": why it could not be
  bool hears_half_closes = false;                // the client does: it will end by itself
};

class Forward {
 public:
  Forward(PodStreams& streams, Key pod, std::string pod_uid, uint16_t port, ForwardEnds ends);
  // The client has left, or it is over: read returns.
  ~Forward();
  bool over() const { return over_; }

 private:
  struct Progress {
    bool client_ended = false;
    uint64_t heard = 0;  // pieces from the client
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
  sys::Bell wake_;
  Guarded<Progress> progress_;
  std::atomic<bool> over_ = false;
  std::jthread thread_;
};

// "8080", as a client names a port. Errors: bad_request, in Kubernetes' words.
Result<uint16_t> read_port(std::string_view text);

}  // namespace coracle::api

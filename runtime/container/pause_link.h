// SPDX-License-Identifier: Apache-2.0
// A connection to a pod's coracle-pause: one request and reply at a time or, after subscribe(), a stream of states. See
// pause/protocol.h for the protocol.
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"
#include "runtime/pause/protocol.h"

namespace coracle::runtime {

constexpr std::chrono::seconds kPauseTimeout{60};  // a launch may wait for a slow file system

struct Answer {
  pause::Reply reply{};
  std::vector<Fd> fds;
};
struct StateMessage {
  pause::State state{};
  Fd pidfd;  // of a running process
};

class PauseLink {
 public:
  // Errors: not_found or unavailable if no coracle-pause listens on that socket.
  static Result<PauseLink> connect(const Fd& directory, const std::string& name);
  static pause::Request request(pause::Kind kind, const std::string& id);

  // Sends a request and returns the reply, which may be a failure. Errors: unavailable if pause has exited; timeout.
  Result<Answer> ask(const pause::Request& request, std::span<const int> fds);
  Result<void> subscribe();
  // The next state of the subscription; nothing if none arrives in time. Errors: unavailable if pause has exited.
  Result<std::optional<StateMessage>> next(std::optional<std::chrono::milliseconds> timeout);
  const Fd& fd() const { return socket_; }
  int peer_pid() const { return peer_pid_; }

 private:
  Fd socket_;
  int peer_pid_ = 0;
};

}  // namespace coracle::runtime

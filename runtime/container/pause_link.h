// SPDX-License-Identifier: Apache-2.0
// A connection to a pod's coracle-pause: requests and their replies one at a time, or, once subscribed, states as they
// come. See pause/protocol.h for the conversation.
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

constexpr std::chrono::seconds kPausePatience{60};  // a launch may wait for a slow file system

struct Answer {
  pause::Reply reply{};
  std::vector<Fd> fds;
};
struct StateMessage {
  pause::State state{};
  Fd pidfd;  // of a process that runs
};

class PauseLink {
 public:
  // Errors: not_found or unavailable when no pause serves that socket.
  static Result<PauseLink> connect(const Fd& directory, const std::string& name);
  static pause::Request request(pause::Kind kind, const std::string& id);

  // Sends and waits for the reply, whatever it says. Errors: unavailable when pause is gone, timeout.
  Result<Answer> ask(const pause::Request& request, std::span<const int> fds);
  Result<void> subscribe();
  // The next state of a subscription; nothing when there is none now. Errors: unavailable when pause is gone.
  Result<std::optional<StateMessage>> next(std::optional<std::chrono::milliseconds> patience);
  const Fd& fd() const { return socket_; }
  int peer_pid() const { return peer_pid_; }

 private:
  Fd socket_;
  int peer_pid_ = 0;
};

}  // namespace coracle::runtime

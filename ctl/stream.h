// SPDX-License-Identifier: Apache-2.0
// A process in a container, spoken with over one WebSocket by the channels of v5.channel.k8s.io:
//   input ──stdin (0), resize (4), end of stdin (255)──▶ server ──stdout (1), stderr (2), error (3)──▶ output
// For exec, attach, run and cp. Source: Kubernetes remotecommand; RFC 6455.
#pragma once

#include <unistd.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ctl/session.h"

namespace coracle::ctl {

struct StreamRequest {
  std::string ns, pod, container;
  std::vector<std::string> command;  // empty: attach to the container's own process
  bool use_stdin = false, tty = false;
};

struct StreamEnds {
  int input = STDIN_FILENO;                                            // read when stdin is used
  std::function<Result<void>(std::string_view)> on_stdout, on_stderr;  // none: our own
  bool interruptible = false;  // SIGINT and SIGTERM end the talk with 128 + signal, instead of ending us
};

// Opens the stream. Errors: as Session::json.
Result<std::unique_ptr<Session::Socket>> open_stream(Session& session, const StreamRequest& request);
// Talks until the process ends. With a terminal, ours is in raw mode meanwhile. Gives the process' exit code. Errors:
// unavailable when the connection breaks before; what the server says instead of an exit code.
Result<int> talk(Session::Socket& socket, const StreamRequest& request, const StreamEnds& ends = {});

// The status that ends a stream, as text on the error channel. Pure.
struct StreamEnd {
  std::optional<int> exit_code;
  std::optional<Error> failure;
};
StreamEnd read_stream_end(std::string_view text);

}  // namespace coracle::ctl

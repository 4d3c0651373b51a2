// SPDX-License-Identifier: Apache-2.0
// The streams of a process in a container over one WebSocket, by the channels of v5.channel.k8s.io:
//   input ──stdin (0), resize (4), end of stdin (255)──▶ server ──stdout (1), stderr (2), error (3)──▶ output
// Used by exec, attach, run and cp. Source: Kubernetes remotecommand; RFC 6455.
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
  std::vector<std::string> command;  // empty: attach to the container's main process
  bool use_stdin = false, tty = false;
};

struct StreamHandles {
  int input = STDIN_FILENO;                                            // read if the request uses stdin
  std::function<Result<void>(std::string_view)> on_stdout, on_stderr;  // empty: this process's stdout or stderr
  std::string detach_keys;     // bytes of the input that end the stream, 0 being the exit code; "": none
  bool interruptible = false;  // SIGINT and SIGTERM end the stream with 128 + signal and not this process
};

// Opens the stream. Errors: those of Session::json.
Result<std::unique_ptr<Session::Socket>> open_stream(Session& session, const StreamRequest& request);
// Copies the streams until the process ends. With a tty, the local terminal is in raw mode meanwhile. Returns the exit code of
// the process. Errors: unavailable if the connection breaks first; the server's error if there is no exit code.
Result<int> run_stream(Session::Socket& socket, const StreamRequest& request, const StreamHandles& ends = {});
// Whether attaching failed because the container ended at once: its log has all there is to know. The node may know of that
// before the pod's status does. Pure.
bool has_come_too_late(const Error& why);

// "ctrl-p,ctrl-q", "a", "ctrl-[": the bytes that a terminal sends for these keys. Errors: bad_request. Pure.
Result<std::string> parse_detach_keys(const std::string& keys);

// Finds the keys in what is typed. Pure.
class DetachKeys {
 public:
  explicit DetachKeys(std::string keys) : keys_(std::move(keys)) {}
  // What of `typed` and of earlier input is to be sent: all but what may be the beginning of the keys.
  std::string pass(std::string_view typed);
  bool detached() const { return detached_; }

 private:
  std::string keys_;
  size_t seen_ = 0;  // of the keys, at the end of what was typed
  bool detached_ = false;
};

// Reads the Status that the error channel carries at the end of a stream. Pure.
struct StreamResult {
  std::optional<int> exit_code;
  std::optional<Error> failure;
};
StreamResult read_stream_end(std::string_view text);

}  // namespace coracle::ctl

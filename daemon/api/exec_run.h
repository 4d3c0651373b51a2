// SPDX-License-Identifier: Apache-2.0
// One exec or attach from start to end, independent of the transport (exec_websocket.cc, exec_spdy.cc).
//   carrier ──read_stdin──▶ feeder (a thread) ──▶ ExecSession ──output (the node's threads)──▶ carrier
//                                                       └──end──▶ waiter (a thread) ──ended──▶ carrier
// The thread that receives from the client never waits for the process. So a disconnected client is noticed and its process is
// ended.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "daemon/stream/stream.h"
#include "runtime/base/guarded.h"
#include "runtime/base/json.h"

namespace coracle::api {

struct ExecCarrier {
  ExecOutput& output;
  // Blocks. Returns "" at end of input; nullopt when the connection is lost, which is not an end of input. Absent: there is no
  // input.
  std::function<std::optional<std::string>()> read_stdin;
  std::function<void(const Result<int>&)> ended;  // all output was passed on, or the process could not be started
  const Fd& socket;                               // shut down some time after that if the client stays connected
};

class ExecRun {
 public:
  // Starts the process. `streams` and everything that `carrier` refers to must outlive this object.
  ExecRun(PodStreams& streams, const ExecRequest& request, ExecCarrier carrier);
  // Call when the client has disconnected: read_stdin must return nullopt from then on.
  ~ExecRun();
  void resize(uint16_t width, uint16_t height);

 private:
  void feed();
  void see_out(const std::optional<Error>& not_started);

  ExecCarrier carrier_;
  std::unique_ptr<ExecSession> session_;
  Guarded<bool> left_{false};
  std::jthread feeder_, waiter_;
};

// The text of the error channel at the end: from version 4 on a Status; before that plain text, and empty on success.
std::string exec_end_text(int version, const Result<int>& code);
// Parses a terminal size, {"Width":80,"Height":24}. Returns false if it is malformed.
bool apply_size(ExecRun& run, std::string_view text);

}  // namespace coracle::api

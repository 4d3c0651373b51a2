// SPDX-License-Identifier: Apache-2.0
// One exec or attach from its start to its end, whatever carries it to the client (exec_websocket.cc, exec_spdy.cc).
//   carrier ──read_stdin──▶ feeder (a thread) ──▶ ExecSession ──output (the node's threads)──▶ carrier
//                                                       └──end──▶ waiter (a thread) ──ended──▶ carrier
// Who receives from the client never waits for the process: a client that leaves is noticed, and takes the process along.
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
  // Blocks. "" at the end; nothing when the client was cut off, which ends no input. None: there is no input.
  std::function<std::optional<std::string>()> read_stdin;
  std::function<void(const Result<int>&)> ended;  // all output was handed over; or it could not be started
  const Fd& socket;                               // ended, some time after, when the client stays
};

class ExecRun {
 public:
  // Starts the process. `streams` and what `carrier` refers to outlive this.
  ExecRun(PodStreams& streams, const ExecRequest& request, ExecCarrier carrier);
  // The client has left: read_stdin returns, and goes on returning nothing.
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

// What the error channel says at the end. From version 4 on a Status; before, plain text, and nothing when all went well.
std::string exec_end_text(int version, const Result<int>& code);
// {"Width":80,"Height":24}, as clients tell the size of their terminal. False: it is something else.
bool apply_size(ExecRun& run, std::string_view text);

}  // namespace coracle::api

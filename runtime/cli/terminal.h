// SPDX-License-Identifier: Apache-2.0
// A process's terminal: handed to an engine over its console socket, or joined with our own while we stay in front.
// Source: runc docs/terminals.md for what goes over the socket; tty_ioctl(4), termios(3).
#pragma once

#include <string>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"

namespace coracle::cli {

// Sends the near end of a terminal to who listens at `path`.
Result<void> send_terminal(const std::string& path, const Fd& terminal);

// Our standard input and output joined with the near end of a terminal: raw while it lasts, as it was before afterwards,
// also on the way out by an error.
class TerminalBridge {
 public:
  static Result<TerminalBridge> join(Fd terminal);
  TerminalBridge(TerminalBridge&&) noexcept;
  TerminalBridge& operator=(TerminalBridge&&) = delete;
  ~TerminalBridge();
  void resize() const;  // to the size of ours
  // Copies both ways until `signals` is readable (true), or `ended` is, and all that was written was read, or the terminal is
  // closed (false: there is nothing to copy any more).
  Result<bool> copy(const Fd& ended, const Fd& signals);

 private:
  TerminalBridge() = default;
  Fd terminal_;
  std::string saved_mode_;  // a termios; "" = our input is no terminal
  bool input_open_ = true;
};

}  // namespace coracle::cli

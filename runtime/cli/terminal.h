// SPDX-License-Identifier: Apache-2.0
// The terminal of a container process: sent to an engine over its console socket, or connected to ours in the foreground. Source:
// runc docs/terminals.md for the message on the socket; tty_ioctl(4), termios(3).
#pragma once

#include <string>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"

namespace coracle::cli {

// Sends the master of a terminal to the listener at `path`.
Result<void> send_terminal(const std::string& path, const Fd& terminal);

// Connects our standard input and output to the master of a terminal. Our terminal is in raw mode meanwhile, and is restored at
// the end, also after an error.
class TerminalBridge {
 public:
  static Result<TerminalBridge> join(Fd terminal);
  TerminalBridge(TerminalBridge&&) noexcept;
  TerminalBridge& operator=(TerminalBridge&&) = delete;
  ~TerminalBridge();
  void resize() const;  // sets the size of our terminal
  // Copies in both directions. Returns true if `signals` is readable or `ended` is readable and all output has been copied, and
  // false if the terminal is closed and there is nothing left to copy.
  Result<bool> copy(const Fd& ended, const Fd& signals);

 private:
  TerminalBridge() = default;
  Fd terminal_;
  std::string saved_mode_;  // a termios; "": our input is not a terminal
  bool input_open_ = true;
};

}  // namespace coracle::cli

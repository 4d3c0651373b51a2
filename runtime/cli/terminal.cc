// SPDX-License-Identifier: Apache-2.0
// See terminal.h.
#include "runtime/cli/terminal.h"

#include "runtime/sys/file.h"
#include "runtime/sys/stream.h"
#include "runtime/sys/terminal.h"

namespace coracle::cli {

Result<void> send_terminal(const std::string& path, const Fd& terminal) {
  Fd socket = TRY(sys::connect_stream(path).wrap("--console-socket " + path));
  const std::string_view name = "/dev/ptmx";  // the receiver may print it
  const int fds[] = {terminal.get()};
  return sys::send_message(socket, std::as_bytes(std::span(name)), fds).wrap("--console-socket " + path);
}

Result<TerminalBridge> TerminalBridge::join(Fd terminal) {
  TerminalBridge out;
  out.terminal_ = std::move(terminal);
  out.saved_mode_ = TRY(sys::make_raw(0));
  out.resize();
  return out;
}

TerminalBridge::TerminalBridge(TerminalBridge&& other) noexcept
    : terminal_(std::move(other.terminal_)), saved_mode_(std::move(other.saved_mode_)), input_open_(other.input_open_) {
  other.saved_mode_.clear();
}

TerminalBridge::~TerminalBridge() { sys::restore_mode(0, saved_mode_); }

void TerminalBridge::resize() const { sys::copy_window_size(0, terminal_); }

Result<bool> TerminalBridge::copy(const Fd& ended, const Fd& signals) {
  while (true) {
    sys::Ends ready = TRY(sys::wait_any({input_open_ ? 0 : -1, terminal_.get(), ended.get(), signals.get()}));
    if (ready[0] && !sys::copy_some(0, terminal_.get())) input_open_ = false;
    const bool is_closed = ready[1] && !sys::copy_some(terminal_.get(), 1);
    if (ready[3]) return true;
    if (is_closed) return false;
    if (!ready[2] || ready[1]) continue;
    return false;  // it has ended, and all its output was read
  }
}

}  // namespace coracle::cli

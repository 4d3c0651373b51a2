// SPDX-License-Identifier: Apache-2.0
// Terminals of this process: raw mode and back, window sizes, and copying between descriptors. Errors: errno's. Source:
// termios(3), tty_ioctl(4).
#pragma once

#include <array>
#include <string>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"

namespace coracle::sys {

// Sets raw mode and returns the previous mode, opaque. Returns "" and does nothing if `fd` is not a terminal.
Result<std::string> make_raw(int fd);
void restore_mode(int fd, const std::string& mode);
void copy_window_size(int from, const Fd& to);  // does nothing if `from` is not a terminal

using Ends = std::array<bool, 4>;
// Waits until one of these is readable or closed; -1: unused. Returns which ones are. On EINTR it returns with none set.
Result<Ends> wait_any(const std::array<int, 4>& fds);
// Reads available bytes and writes all of them. False: end of the input, or the output is closed.
bool copy_some(int from, int to);

}  // namespace coracle::sys

// SPDX-License-Identifier: Apache-2.0
// Terminals of our own: raw and back, their sizes, and copying between descriptors. Source: termios(3), tty_ioctl(4).
#pragma once

#include <array>
#include <string>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"

namespace coracle::sys {

// What the mode was, opaque; "" when `fd` is no terminal, and then nothing happens.
Result<std::string> make_raw(int fd);
void restore_mode(int fd, const std::string& mode);
void copy_window_size(int from, const Fd& to);  // nothing when `from` is no terminal

using Ends = std::array<bool, 4>;
// Waits until one of these is readable or closed; -1 = none. Which ones. EINTR is nothing.
Result<Ends> wait_any(const std::array<int, 4>& fds);
// Reads what is there and writes all of it. False: the input's end, or the other side is gone.
bool copy_some(int from, int to);

}  // namespace coracle::sys

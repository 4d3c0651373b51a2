// SPDX-License-Identifier: Apache-2.0
// See terminal.h.
#include "runtime/sys/terminal.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace coracle::sys {

Result<std::string> make_raw(int fd) {
  termios mode{};
  if (::tcgetattr(fd, &mode) < 0) return std::string();
  std::string before(reinterpret_cast<const char*>(&mode), sizeof mode);
  ::cfmakeraw(&mode);
  if (::tcsetattr(fd, TCSANOW, &mode) < 0) return Error::from_errno("make terminal raw");
  return before;
}

void restore_mode(int fd, const std::string& mode) {
  termios before{};
  if (mode.size() != sizeof before) return;
  std::memcpy(&before, mode.data(), sizeof before);
  (void)::tcsetattr(fd, TCSADRAIN, &before);  // it may be closed
}

void copy_window_size(int from, const Fd& to) {
  winsize size{};
  if (::ioctl(from, TIOCGWINSZ, &size) == 0) (void)::ioctl(to.get(), TIOCSWINSZ, &size);
}

Result<Ends> wait_any(const std::array<int, 4>& fds) {
  pollfd waits[4];
  for (size_t i = 0; i < fds.size(); ++i) waits[i] = {fds[i], POLLIN, 0};
  Ends out{};
  if (::poll(waits, fds.size(), -1) < 0) {
    if (errno == EINTR) return out;
    return Error::from_errno("poll");
  }
  for (size_t i = 0; i < fds.size(); ++i) out[i] = waits[i].revents != 0;
  return out;
}

bool copy_some(int from, int to) {
  char buffer[16384];
  ssize_t n = ::read(from, buffer, sizeof buffer);
  if (n < 0 && (errno == EINTR || errno == EAGAIN)) return true;
  for (ssize_t at = 0; at < n;) {
    ssize_t written = ::write(to, buffer + at, size_t(n - at));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    at += written;
  }
  return n > 0;
}

}  // namespace coracle::sys

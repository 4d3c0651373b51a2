// SPDX-License-Identifier: Apache-2.0
// See text_log.h.
#include "daemon/text_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/sys/file.h"

namespace coracle {
namespace {

const char* name_of(LogLevel level) {
  switch (level) {
    case LogLevel::error: return "error";
    case LogLevel::warning: return "warning";
    case LogLevel::notice: return "notice";
    case LogLevel::info: return "info";
    case LogLevel::debug: return "debug";
  }
  return "";
}

bool is_same_file(const struct stat& a, const struct stat& b) { return a.st_dev == b.st_dev && a.st_ino == b.st_ino; }

}  // namespace

TextLog::TextLog(int fd, size_t file_bytes_max, std::vector<int> also)
    : fd_(fd), file_bytes_max_(file_bytes_max), also_(std::move(also)) {
  char path[4096];
  ssize_t length = ::readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), path, sizeof path);
  if (length > 0) path_.assign(path, size_t(length));
}

void TextLog::write(LogLevel level, std::string_view component, std::string_view text, LogFields fields) {
  const std::string line =
      format_micro_time(system_clock().now()) + " " + name_of(level) + " " + log_line(component, text, fields) + "\n";
  std::lock_guard lock(mutex_);
  if (::write(fd_, line.data(), line.size()) > 0) turn_over();  // a failed log write cannot be logged
}

// On any error the file keeps growing, which is better than no log.
void TextLog::turn_over() {
  struct stat now {
  }, at_path{};
  if (::fstat(fd_, &now) != 0 || !S_ISREG(now.st_mode) || uint64_t(now.st_size) < file_bytes_max_) return;
  if (::stat(path_.c_str(), &at_path) != 0 || !is_same_file(now, at_path)) return;  // another program has renamed or removed it
  if (::rename(path_.c_str(), (path_ + ".1").c_str()) != 0) return;
  Fd next(::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, now.st_mode & 0777));
  if (!next) return;
  for (int other : also_) {
    struct stat its {};
    if (::fstat(other, &its) == 0 && is_same_file(now, its)) (void)sys::duplicate_onto(next, other);
  }
  (void)sys::duplicate_onto(next, fd_);
}

}  // namespace coracle

// SPDX-License-Identifier: Apache-2.0
// The daemon's log as text, when it is not sent to the journal: "2026-01-02T15:04:05.000000Z warning node: what happened
// field=value".
#pragma once

#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/log.h"

namespace coracle {

class TextLog {
 public:
  // Writes to `fd`, which remains the caller's. If that is a file, its size is limited to `file_bytes_max`: a full file is
  // renamed to NAME.1, which replaces the previous one. A new file is opened under this descriptor number, and under those
  // numbers in `also` that referred to the same file.
  TextLog(int fd, size_t file_bytes_max, std::vector<int> also = {});

  void write(LogLevel level, std::string_view component, std::string_view text, LogFields fields);  // from any thread

 private:
  void turn_over();

  const int fd_;
  const size_t file_bytes_max_;
  const std::vector<int> also_;
  std::string path_;  // path of the file when it was opened
  std::mutex mutex_;
};

}  // namespace coracle

// SPDX-License-Identifier: Apache-2.0
// The daemon's log as text, where no journal takes it: "2026-01-02T15:04:05.000000Z warning node: what happened field=value".
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
  // Writes to `fd`, which stays the caller's. Is that a file, it is kept below `file_bytes_max`: then it is renamed to NAME.1, in
  // the place of the one before, and a new one takes its place, under this number and under those of `also` that were the same
  // file.
  TextLog(int fd, size_t file_bytes_max, std::vector<int> also = {});

  void write(LogLevel level, std::string_view room, std::string_view text, LogFields fields);  // from any thread

 private:
  void turn_over();

  const int fd_;
  const size_t file_bytes_max_;
  const std::vector<int> also_;
  std::string path_;  // of the file when it was opened
  std::mutex mutex_;
};

}  // namespace coracle

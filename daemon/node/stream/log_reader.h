// SPDX-License-Identifier: Apache-2.0
// Reads a container's log in the CRI format: lines "<time> <stream> <F|P> <content>" in <n>.log, with older lines in <n>.log.1,
// <n>.log.2, … A reader keeps its position when the log is rotated. Source: CRI logging format (KEP-1819); kubelet's log reader
// (semantics of tail, since, limits).
#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "daemon/node/files.h"
#include "runtime/base/clock.h"
#include "runtime/base/result.h"

namespace coracle::node {

struct LogOptions {
  bool timestamps = false;
  std::optional<int64_t> tail_lines, limit_bytes;
  std::optional<WallTime> since;
  std::string stream;  // only lines of this stream; "": of both. Lines of the other stream count for tail_lines
};

// A parsed log line. nullopt if the line is malformed.
struct LogLine {
  std::string_view time, stream, content;
  bool whole = true;  // false: a partial line (P); the rest follows in the next one
};
std::optional<LogLine> parse_log_line(std::string_view line);

// Receives the log: one line at a time (or a part of a long one) with its newline. An empty piece means that there is nothing
// more for now. Returns false to stop.
using LogOut = std::function<bool(std::string_view)>;

// Converts raw log bytes to the output of `kubectl logs`. Its only state is the position in a line.
class LogFilter {
 public:
  LogFilter(const LogOptions& options, const LogOut& out) : options_(options), out_(out) {}
  // Returns false if the limit is reached or the receiver has stopped.
  bool take(std::string_view bytes);

 private:
  bool take_line(std::string_view line);
  bool take_rest(std::string_view bytes);
  bool write(std::string_view bytes);
  const LogOptions& options_;
  const LogOut& out_;
  std::string rest_;   // an incomplete raw line
  std::string shown_;  // a line with its timestamp
  bool at_line_start_ = true;
  // Inside a long line whose first part was processed; and whether that part was shown.
  bool in_long_line_ = false, is_shown_ = false;
  int64_t written_ = 0;
};

// Reads the whole log. Errors: not_found.
Result<void> read_log(const std::string& path, const LogOptions& options, const LogOut& out);

// Reads the whole log and then follows it, until `running` returns false, `out` returns false, or stop. `running` is called after
// each change and each time `watch` is woken. `watch` watches the log's directory. A reader that is slower than log rotation
// loses only the lines of files that are removed before it reaches them. A log that is not there yet is waited for. Blocks. There
// are no errors at present.
Result<void> follow_log(const std::string& path, const LogOptions& options, const LogOut& out, files::DirectoryWatch& watch,
                        const std::function<bool()>& running, std::stop_token stop);

// The contents of the last lines, at most max_bytes of them, for termination messages. "" if there is no log.
std::string last_lines(const std::string& path, int64_t lines, size_t max_bytes);

}  // namespace coracle::node

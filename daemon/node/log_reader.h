// SPDX-License-Identifier: Apache-2.0
// Reads a container's log as its runtime writes it: lines "<time> <stream> <F|P> <content>" in <n>.log, older ones in
// <n>.log.1, <n>.log.2, … A reader keeps its place when the log is rotated under it.
// Source: CRI logging format (KEP-1819); kubelet's log reader (semantics of tail, since, limits).
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
  std::string stream;  // of these lines only; "": of all. Lines of another count for the tail
};

// One line taken apart. Nothing when it is none.
struct LogLine {
  std::string_view time, stream, content;
  bool whole = true;  // false: a part of a longer line follows
};
std::optional<LogLine> parse_log_line(std::string_view line);

// Where a log goes: a line of it (or a part of a long one) at a time, with its newline. An empty one says that nothing more is
// there for now. False: nobody reads any more.
using LogOut = std::function<bool(std::string_view)>;

// Turns raw log bytes into what a person reads. Pure but for its place in a line.
class LogFilter {
 public:
  LogFilter(const LogOptions& options, const LogOut& out) : options_(options), out_(out) {}
  // false: enough was written, or nobody reads.
  bool take(std::string_view bytes);

 private:
  bool take_line(std::string_view line);
  bool take_rest(std::string_view bytes);
  bool write(std::string_view bytes);
  const LogOptions& options_;
  const LogOut& out_;
  std::string rest_;   // an unfinished raw line
  std::string shown_;  // a line with its time
  bool at_line_start_ = true;
  bool in_long_line_ = false, is_shown_ = false;  // what comes belongs to a line whose beginning was taken; and was it shown
  int64_t written_ = 0;
};

// Everything that is there. Errors: not_found.
Result<void> read_log(const std::string& path, const LogOptions& options, const LogOut& out);

// The same, and then what is added, until `running` says no (asked after each change, and each time `watch` is woken),
// `out` returns false, or stop. `watch` is on the log's directory. Whoever reads more slowly than the log is rotated away loses
// what is removed before he comes to it, and nothing else.
Result<void> follow_log(const std::string& path, const LogOptions& options, const LogOut& out, files::DirectoryWatch& watch,
                        const std::function<bool()>& running, std::stop_token stop);

// The contents of the last lines, at most max_bytes of them, for termination messages. "" when there is no log.
std::string last_lines(const std::string& path, int64_t lines, size_t max_bytes);

}  // namespace coracle::node

// SPDX-License-Identifier: Apache-2.0
// See log_reader.h.
#include "daemon/node/stream/log_reader.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "runtime/base/text.h"
#include "runtime/sys/file.h"

namespace coracle::node {

namespace {

constexpr size_t kBlock = 32 << 10;
constexpr size_t kLineMax = 1 << 20;  // a longer raw line is passed on in pieces
constexpr int kRotatedMax = 100, kOpenTriesMax = 10;
constexpr std::chrono::seconds kGoneCheck{30};  // interval of checking whether the client of a silent log is still connected

struct OpenLog {
  Fd fd;
  ino_t inode = 0;
  off_t size = 0, start = 0;  // start: offset of the first byte to read
};

std::optional<ino_t> inode_of(const Result<Fd>& fd) {
  auto info = fd ? sys::stat(*fd) : Result<struct stat>(Error(Code::not_found, ""));
  if (!info) return std::nullopt;
  return info->st_ino;
}

Result<Fd> open_log(const std::string& path) { return sys::open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK); }

// The files that are newer than `beyond`, oldest first; all files if `beyond` is not among them.
std::vector<OpenLog> open_logs_once(const std::string& path, std::optional<ino_t> beyond) {
  std::vector<OpenLog> logs;
  std::vector<ino_t> seen;
  int missing = 0;
  for (int n = 0; n < kRotatedMax; ++n) {
    auto fd = open_log(n == 0 ? path : path + "." + std::to_string(n));
    if (!fd && ++missing > 1) break;
    if (!fd) continue;  // during a rotation one name is missing
    missing = 0;
    auto info = sys::stat(*fd);
    if (info && info->st_ino == beyond) break;
    // A rotation between two opens gives the same file twice.
    if (!info || std::find(seen.begin(), seen.end(), info->st_ino) != seen.end()) continue;
    seen.push_back(info->st_ino);
    logs.push_back({*std::move(fd), info->st_ino, info->st_size, 0});
  }
  std::reverse(logs.begin(), logs.end());
  return logs;
}

// Two rotations between two opens would give a wrong order, so this repeats until the newest file is still the newest.
std::vector<OpenLog> open_logs(const std::string& path, std::optional<ino_t> beyond = std::nullopt) {
  std::vector<OpenLog> logs;
  for (int i = 0; i < kOpenTriesMax; ++i) {
    auto newest = inode_of(open_log(path));
    if (newest == beyond) return {};
    logs = open_logs_once(path, beyond);
    if (newest == inode_of(open_log(path))) break;
  }
  return logs;
}

ssize_t read_at(const Fd& fd, char* buffer, size_t size, off_t at) {
  ssize_t got;
  do {
    got = ::pread(fd.get(), buffer, size, at);
  } while (got < 0 && errno == EINTR);
  return got;
}

// Advances the start so that at most `lines` lines follow; returns their number.
int64_t seek_tail(OpenLog& log, int64_t lines) {
  char buffer[kBlock];
  int64_t found = 0;
  off_t end = log.size;
  if (lines == 0) return log.start = log.size, 0;
  while (end > 0) {
    off_t begin = std::max<off_t>(0, end - off_t(kBlock));
    ssize_t got = read_at(log.fd, buffer, size_t(end - begin), begin);
    if (got <= 0) break;
    for (ssize_t i = got - 1; i >= 0; --i) {
      if (buffer[i] != '\n' || begin + i + 1 == log.size) continue;
      if (++found == lines) return log.start = begin + i + 1, found;
    }
    end = begin;
  }
  log.start = 0;
  return log.size > 0 ? found + 1 : 0;
}

// Reads from `at` to the present end. Returns false if the filter has enough.
bool read_on(const Fd& fd, off_t& at, LogFilter& filter) {
  char buffer[kBlock];
  while (true) {
    ssize_t got = read_at(fd, buffer, sizeof buffer, at);
    if (got <= 0) return true;
    at += got;
    if (!filter.take({buffer, size_t(got)})) return false;
  }
}

void apply_tail(std::vector<OpenLog>& logs, std::optional<int64_t> lines) {
  if (!lines) return;
  int64_t left = std::max<int64_t>(*lines, 0);
  for (auto log = logs.rbegin(); log != logs.rend(); ++log) left -= seek_tail(*log, left);
}

}  // namespace

std::optional<LogLine> parse_log_line(std::string_view line) {
  LogLine parsed;
  size_t space = line.find(' ');
  if (space == line.npos) return std::nullopt;
  parsed.time = line.substr(0, space);
  line.remove_prefix(space + 1);
  space = line.find(' ');
  if (space == line.npos) return std::nullopt;
  parsed.stream = line.substr(0, space);
  line.remove_prefix(space + 1);
  space = line.find(' ');
  std::string_view tags = line.substr(0, space);
  if (tags.empty()) return std::nullopt;
  parsed.whole = tags.front() != 'P';
  parsed.content = line.substr(space == line.npos ? line.size() : space + 1);
  return parsed;
}

bool LogFilter::take(std::string_view bytes) {
  while (!bytes.empty()) {
    size_t end = bytes.find('\n');
    if (end == bytes.npos && !in_long_line_ && rest_.size() + bytes.size() <= kLineMax) {
      rest_ += bytes;
      return true;
    }
    std::string_view line = bytes.substr(0, end == bytes.npos ? end : end + 1);
    bytes.remove_prefix(line.size());
    if (in_long_line_) {
      in_long_line_ = end == bytes.npos;
      if (!take_rest(line)) return false;
      continue;
    }
    in_long_line_ = end == bytes.npos;
    if (!rest_.empty()) {
      rest_ += line;
      std::string whole = std::exchange(rest_, {});
      if (!take_line(whole)) return false;
    } else if (!take_line(line)) {
      return false;
    }
  }
  return true;
}

bool LogFilter::take_line(std::string_view line) {
  const bool ended = line.ends_with('\n');
  is_shown_ = false;
  auto parsed = parse_log_line(ended ? line.substr(0, line.size() - 1) : line);
  if (!parsed) return true;  // truncated by a full disk, or not in CRI format
  if (!options_.stream.empty() && parsed->stream != options_.stream) return true;
  if (options_.since) {
    auto time = parse_time(parsed->time);
    if (time && *time < *options_.since) return true;
  }
  std::string_view text = parsed->content;
  if (parsed->whole && ended) text = {text.data(), text.size() + 1};
  if (options_.timestamps && at_line_start_) {
    shown_.assign(parsed->time).append(" ").append(text);
    text = shown_;
  }
  at_line_start_ = parsed->whole;
  is_shown_ = true;
  return write(text);
}

// Processes the rest of a line whose beginning take_line() got without its end.
bool LogFilter::take_rest(std::string_view bytes) {
  if (!is_shown_) return true;
  if (bytes.ends_with('\n') && !at_line_start_) bytes.remove_suffix(1);  // the newline of a partial line (P): the line goes on
  return write(bytes);
}

bool LogFilter::write(std::string_view bytes) {
  if (options_.limit_bytes) {
    int64_t left = *options_.limit_bytes - written_;
    if (left <= 0) return false;
    bytes = bytes.substr(0, size_t(left));
  }
  written_ += int64_t(bytes.size());
  return bytes.empty() || out_(bytes);
}

Result<void> read_log(const std::string& path, const LogOptions& options, const LogOut& out) {
  auto logs = open_logs(path);
  if (logs.empty()) return Error(Code::not_found, "no log at " + path);
  apply_tail(logs, options.tail_lines);
  LogFilter filter(options, out);
  for (auto& log : logs)
    if (!read_on(log.fd, log.start, filter)) break;
  return {};
}

Result<void> follow_log(const std::string& path, const LogOptions& options, const LogOut& out, files::DirectoryWatch& watch,
                        const std::function<bool()>& running, std::stop_token stop) {
  auto logs = open_logs(path);
  apply_tail(logs, options.tail_lines);
  LogFilter filter(options, out);
  std::optional<OpenLog> current;
  while (!stop.stop_requested()) {
    bool runs = running();  // checked before reading, so that everything before the end is read
    if (current && !read_on(current->fd, current->start, filter)) return {};
    if (logs.empty()) logs = open_logs(path, current ? std::optional(current->inode) : std::nullopt);
    if (!logs.empty()) {  // after a rotation: the rest of the current file, then the newer files
      if (current && !read_on(current->fd, current->start, filter)) return {};
      for (OpenLog& log : std::exchange(logs, {})) {
        current = std::move(log);
        if (!read_on(current->fd, current->start, filter)) return {};
      }
      continue;
    }
    if (!runs || !out({})) return {};
    (void)watch.wait(stop, kGoneCheck);
  }
  return {};
}

std::string last_lines(const std::string& path, int64_t lines, size_t max_bytes) {
  std::string text;
  auto keep = [&](std::string_view bytes) {
    text += bytes;
    if (text.size() > 2 * max_bytes) text.erase(0, text.size() - max_bytes);
    return true;
  };
  LogOptions options;
  options.tail_lines = lines;
  if (!read_log(path, options, keep)) return "";
  if (text.size() > max_bytes) text.erase(0, text.size() - max_bytes);
  return text;
}

}  // namespace coracle::node

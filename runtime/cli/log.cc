// SPDX-License-Identifier: Apache-2.0
// See log.h.
#include "runtime/cli/log.h"

#include <fcntl.h>

#include <cstdio>

#include "runtime/base/clock.h"
#include "runtime/base/json.h"
#include "runtime/base/text.h"
#include "runtime/sys/file.h"

namespace coracle::cli {
namespace {

struct Log {
  Fd file;
  bool is_json = false, has_debug = false;
};
Log the_log;

// A path in the text must not break the message into two lines.
void say(const std::string& text) { std::fprintf(stderr, "coracle-oci: %s\n", one_line(text).c_str()); }

void write(const char* level, const std::string& text) {
  if (!the_log.file) return;
  std::string line = one_line(text), time = format_time(system_clock().now());
  std::string out = the_log.is_json ? to_text(json::object{{"level", level}, {"msg", line}, {"time", time}})
                                    : "time=\"" + time + "\" level=" + level + " msg=" + to_text(json::value(line));
  (void)sys::write_all(the_log.file, out + "\n");  // a failed log write is not an error
}

}  // namespace

Result<void> open_log(const Options& options) {
  the_log.is_json = options.log_format == "json";
  the_log.has_debug = options.debug;
  if (options.log.empty()) return {};
  the_log.file = TRY(sys::open(options.log, O_WRONLY | O_CREAT | O_APPEND, 0600).wrap("--log"));
  return {};
}

void debug(const std::string& text) {
  if (!the_log.has_debug) return;
  write("debug", text);
  if (!the_log.file) say(text);
}

void warn(const std::string& text) {
  write("warning", text);
  if (!the_log.file) say(text);
}

void say_error(const std::string& text) {
  write("error", text);
  say(text);
}

}  // namespace coracle::cli

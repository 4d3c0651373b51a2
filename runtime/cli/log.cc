// SPDX-License-Identifier: Apache-2.0
// See log.h.
#include "runtime/cli/log.h"

#include <fcntl.h>
#include <syslog.h>

#include <cstdio>
#include <string_view>

#include "runtime/base/clock.h"
#include "runtime/base/json.h"
#include "runtime/base/text.h"
#include "runtime/sys/file.h"

namespace coracle::cli {
namespace {

constexpr const char* kJournal = "/run/systemd/journal/socket";

struct Log {
  Fd file, journal;
  bool is_syslog = false, is_json = false, has_debug = false, has_warnings = true;
  std::string name;  // for syslog and the journal
  bool is_there() const { return file || journal || is_syslog; }
};
Log the_log;

// A path in the text must not break the message into two lines.
void say(const std::string& text) { std::fprintf(stderr, "coracle-oci: %s\n", one_line(text).c_str()); }

int priority_of(std::string_view level) { return level == "debug" ? LOG_DEBUG : level == "warning" ? LOG_WARNING : LOG_ERR; }

void write(const char* level, const std::string& text) {
  if (!the_log.is_there()) return;
  std::string line = one_line(text), time = format_time(system_clock().now());
  if (the_log.is_syslog) ::syslog(priority_of(level), "%s", line.c_str());
  if (the_log.journal)  // as one datagram. Source: systemd, "Native Journal Protocol"
    (void)sys::write_all(the_log.journal, "PRIORITY=" + std::to_string(priority_of(level)) + "\nMESSAGE=" + line +
                                              "\nSYSLOG_IDENTIFIER=coracle-oci\nID=" + one_line(the_log.name) + "\n");
  if (!the_log.file) return;
  std::string out = the_log.is_json ? to_text(json::object{{"level", level}, {"msg", line}, {"time", time}})
                                    : "time=\"" + time + "\" level=" + level + " msg=" + to_text(json::value(line));
  (void)sys::write_all(the_log.file, out + "\n");  // a failed log write is not an error
}

}  // namespace

Result<void> open_log(const Options& options) {
  the_log.is_json = options.log_format == "json";
  the_log.has_debug = options.debug || options.log_level == "debug";
  the_log.has_warnings = the_log.has_debug || options.log_level != "error";
  if (options.log.empty()) return {};
  std::string_view target = options.log;
  auto is_kind = [&](std::string_view kind) {
    const bool is = target.starts_with(kind);
    if (is) target.remove_prefix(kind.size());
    return is;
  };
  const bool is_syslog = is_kind("syslog:"), is_journal = is_kind("journald:");
  if (is_syslog || is_journal) {
    the_log.name = target.empty() ? options.id : std::string(target);
    the_log.is_syslog = is_syslog;
    if (is_syslog) ::openlog(the_log.name.c_str(), 0, LOG_USER);
    else the_log.journal = TRY(sys::connect_datagram(kJournal).wrap("--log " + options.log));
    return {};
  }
  (void)is_kind("file:");
  the_log.file = TRY(sys::open(std::string(target), O_WRONLY | O_CREAT | O_APPEND, 0600).wrap("--log"));
  return {};
}

void debug(const std::string& text) {
  if (!the_log.has_debug) return;
  write("debug", text);
  if (!the_log.is_there()) say(text);
}

void warn(const std::string& text) {
  if (!the_log.has_warnings) return;
  write("warning", text);
  if (!the_log.is_there()) say(text);
}

void say_error(const std::string& text) {
  write("error", text);
  say(text);
}

}  // namespace coracle::cli

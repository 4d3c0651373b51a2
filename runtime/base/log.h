// SPDX-License-Identifier: Apache-2.0
// Logging: one line per event with structured fields, to a sink that main chooses (journald, or standard error with syslog
// priorities). An error is logged once, by the caller that handles it; library code does not log above debug.
//   log_info("node", "pod started", {{"pod", "default/web"}, {"ms", "12"}});
#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/base/result.h"

namespace coracle {

enum class LogLevel { error = 3, warning = 4, notice = 5, info = 6, debug = 7 };  // syslog(3) priorities

using LogField = std::pair<std::string_view, std::string_view>;
using LogFields = std::initializer_list<LogField>;

// Receives the lines of the configured level and of higher priority. Must be thread-safe and must not block for long.
using LogSink = std::function<void(LogLevel, std::string_view component, std::string_view text, LogFields fields)>;

// The text of a log line without time and level: "component: text name=value …". It is always a single line without a newline: a
// name or path that contains line breaks must not look like another log line.
std::string log_line(std::string_view component, std::string_view text, LogFields fields);

void set_log_sink(LogSink sink, LogLevel level);  // before any thread is started
void log(LogLevel level, std::string_view component, std::string_view text, LogFields fields = {});

inline void log_error(std::string_view component, std::string_view text, LogFields f = {}) {
  log(LogLevel::error, component, text, f);
}
inline void log_warning(std::string_view component, std::string_view text, LogFields f = {}) {
  log(LogLevel::warning, component, text, f);
}
inline void log_notice(std::string_view component, std::string_view text, LogFields f = {}) {
  log(LogLevel::notice, component, text, f);
}
inline void log_info(std::string_view component, std::string_view text, LogFields f = {}) {
  log(LogLevel::info, component, text, f);
}
inline void log_debug(std::string_view component, std::string_view text, LogFields f = {}) {
  log(LogLevel::debug, component, text, f);
}

}  // namespace coracle

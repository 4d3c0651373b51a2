// SPDX-License-Identifier: Apache-2.0
// The log's sink, which is the only mutable global. See log.h.
#include "runtime/base/log.h"

#include <cstdio>

#include "runtime/base/text.h"

namespace coracle {
namespace {

void to_stderr(LogLevel level, std::string_view component, std::string_view text, LogFields fields) {
  const std::string line = "<" + std::to_string(int(level)) + ">" + log_line(component, text, fields) + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

LogSink g_sink = to_stderr;
LogLevel g_level = LogLevel::info;

}  // namespace

std::string log_line(std::string_view component, std::string_view text, LogFields fields) {
  std::string line = std::string(component) + ": " + std::string(text);
  for (const auto& [name, value] : fields) line.append(" ").append(name).append("=").append(value);
  return one_line(line);
}

void set_log_sink(LogSink sink, LogLevel level) {
  g_sink = sink ? std::move(sink) : LogSink(to_stderr);
  g_level = level;
}

void log(LogLevel level, std::string_view component, std::string_view text, LogFields fields) {
  if (level <= g_level) g_sink(level, component, text, fields);
}

}  // namespace coracle

// SPDX-License-Identifier: Apache-2.0
// See journal.h.
#include "daemon/journal.h"

#include <sys/stat.h>
#include <sys/uio.h>
#include <systemd/sd-journal.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "daemon/text_log.h"

namespace coracle {
namespace {

void to_journal(LogLevel level, std::string_view component, std::string_view text, LogFields fields) {
  std::string message = "MESSAGE=" + std::string(component) + ": " + std::string(text);
  std::vector<std::string> more;
  for (const auto& [name, value] : fields) {
    message.append(" ").append(name).append("=").append(value);
    std::string upper = "CORACLE_";
    for (char c : name) upper += c >= 'a' && c <= 'z' ? char(c - 'a' + 'A') : c;
    more.push_back(upper + "=" + std::string(value));
  }
  more.push_back(message);
  more.push_back("PRIORITY=" + std::to_string(int(level)));
  more.push_back("CORACLE_COMPONENT=" + std::string(component));
  more.push_back("SYSLOG_IDENTIFIER=coracled");
  std::vector<iovec> parts;
  for (auto& line : more) parts.push_back({line.data(), line.size()});
  (void)sd_journal_sendv(parts.data(), int(parts.size()));  // a failed log write cannot be logged
}

// Whether standard error is connected to the journal: systemd passes its device and inode. See systemd.exec(5), $JOURNAL_STREAM.
bool is_journal() {
  const char* told = std::getenv("JOURNAL_STREAM");
  struct stat error {};
  if (!told || ::fstat(STDERR_FILENO, &error) != 0) return false;
  return std::to_string(error.st_dev) + ":" + std::to_string(error.st_ino) == told;
}

}  // namespace

void choose_log(LogLevel level) {
  if (is_journal()) return set_log_sink(to_journal, level);
  constexpr size_t kFileBytesMax = 8 << 20;
  auto text = std::make_shared<TextLog>(STDERR_FILENO, kFileBytesMax, std::vector<int>{STDOUT_FILENO});
  set_log_sink([text](LogLevel level, std::string_view component, std::string_view what,
                      LogFields fields) { text->write(level, component, what, fields); },
               level);
}

}  // namespace coracle

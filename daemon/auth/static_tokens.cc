// SPDX-License-Identifier: Apache-2.0
// See static_tokens.h. Source: RFC 4180 (quotes), as Go's encoding/csv parses it.
#include "daemon/auth/static_tokens.h"

#include <vector>

#include "runtime/base/log.h"
#include "runtime/base/text.h"
#include "runtime/sys/file.h"

namespace coracle::auth {
namespace {

// The fields of one line. A quoted field may contain commas and doubled quotes. Errors: invalid.
Result<std::vector<std::string>> fields_of(std::string_view line) {
  std::vector<std::string> out;
  for (size_t at = 0;;) {
    std::string field;
    if (at < line.size() && line[at] == '"') {
      for (++at;; ++at) {
        if (at == line.size()) return Error(Code::invalid, "a quote is not closed");
        if (line[at] != '"') field += line[at];
        else if (at + 1 < line.size() && line[at + 1] == '"') field += line[at++];
        else break;
      }
      if (++at < line.size() && line[at] != ',') return Error(Code::invalid, "a comma must follow a closing quote");
    } else {
      size_t end = std::min(line.find(',', at), line.size());
      field = line.substr(at, end - at);
      if (field.find('"') != field.npos) return Error(Code::invalid, "a quote stands in a field that is not quoted");
      at = end;
    }
    out.push_back(std::move(field));
    if (at >= line.size()) return out;
    ++at;
  }
}

}  // namespace

Result<StaticTokens> parse_static_tokens(std::string_view text) {
  StaticTokens out;
  int number = 0;
  for (std::string_view line : split(text, '\n')) {
    std::string where = "line " + std::to_string(++number);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (line.empty()) continue;
    std::vector<std::string> fields = TRY(fields_of(line).wrap(where));
    if (fields.size() < 3) return Error(Code::invalid, where + ": token, user name and user uid are needed");
    if (fields[0].empty()) return Error(Code::invalid, where + ": the token is empty");
    User user{fields[1], fields[2], {}, {}};
    if (fields.size() > 3)
      for (std::string_view group : split(fields[3], ','))
        if (!group.empty()) user.groups.emplace_back(group);
    if (!user.in("system:authenticated")) user.groups.emplace_back("system:authenticated");
    if (!out.insert_or_assign(fields[0], std::move(user)).second)
      log_warning("auth", "duplicate static token; the later line is used", {{"where", where}});
  }
  return out;
}

Result<StaticTokens> read_static_tokens(const std::string& path) {
  std::string text = TRY(sys::read_file(path).wrap("read the static tokens"));
  return parse_static_tokens(text).wrap(path);
}

}  // namespace coracle::auth

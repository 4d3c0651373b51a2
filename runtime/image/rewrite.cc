// SPDX-License-Identifier: Apache-2.0
// See rewrite.h.
#include "runtime/image/rewrite.h"

#include <regex.h>

#include <memory>

namespace coracle::image {
namespace {

constexpr size_t kGroups = 10;  // $0, the whole match, to $9

class Pattern {
 public:
  explicit Pattern(const std::string& text) : status_(::regcomp(&compiled_, text.c_str(), REG_EXTENDED)) {}
  ~Pattern() {
    if (status_ == 0) ::regfree(&compiled_);
  }
  Pattern(const Pattern&) = delete;
  std::string error() const {  // "": none
    if (status_ == 0) return {};
    char text[200];
    ::regerror(status_, &compiled_, text, sizeof text);
    return text;
  }
  // Finds the first match in `text`, which is the beginning of the whole one unless `later`.
  bool find(const char* text, bool later, regmatch_t (&groups)[kGroups]) const {
    return status_ == 0 && ::regexec(&compiled_, text, kGroups, groups, later ? REG_NOTBOL : 0) == 0;
  }

 private:
  regex_t compiled_{};
  int status_;
};

// "$1" and "${1}" are groups, "$$" is a dollar sign.
std::string fill(const std::string& replacement, const char* text, const regmatch_t (&groups)[kGroups]) {
  std::string out;
  for (size_t i = 0; i < replacement.size(); ++i) {
    if (replacement[i] != '$' || i + 1 == replacement.size()) {
      out += replacement[i];
      continue;
    }
    const bool braced = replacement[i + 1] == '{' && i + 3 < replacement.size() && replacement[i + 3] == '}';
    const char which = replacement[i + (braced ? 2 : 1)];
    if (which < '0' || which > '9') {
      out += '$';
      if (which == '$') ++i;
      continue;
    }
    const regmatch_t& group = groups[size_t(which - '0')];
    if (group.rm_so >= 0) out.append(text + group.rm_so, size_t(group.rm_eo - group.rm_so));
    i += braced ? 3 : 1;
  }
  return out;
}

std::string replace_all(const Pattern& pattern, const std::string& text, const std::string& replacement) {
  std::string out;
  const char* at = text.c_str();
  regmatch_t groups[kGroups];
  while (pattern.find(at, at != text.c_str(), groups)) {
    out.append(at, size_t(groups[0].rm_so));
    out += fill(replacement, at, groups);
    at += groups[0].rm_eo;
    if (groups[0].rm_eo > groups[0].rm_so) continue;
    if (!*at) break;  // an empty match: goes on behind the next character
    out += *at++;
  }
  return out + at;
}

}  // namespace

Result<void> check_rewrite(const runtime::RegistryRewrite& rewrite) {
  if (std::string why = Pattern(rewrite.pattern).error(); !why.empty()) return Error(Code::invalid, std::move(why));
  return {};
}

const std::vector<runtime::RegistryRewrite>& rewrites_of(const std::map<std::string, std::vector<runtime::RegistryRewrite>>& all,
                                                         const std::string& registry) {
  static const std::vector<runtime::RegistryRewrite> none;
  auto found = all.find(registry);
  if (found == all.end()) found = all.find("*");
  return found == all.end() ? none : found->second;
}

std::string rewrite_repository(const std::string& repository, const std::vector<runtime::RegistryRewrite>& rewrites) {
  for (const runtime::RegistryRewrite& each : rewrites) {
    std::string name = replace_all(Pattern(each.pattern), repository, each.replacement);
    if (name != repository && !name.empty()) return name;
  }
  return repository;
}

}  // namespace coracle::image

// SPDX-License-Identifier: Apache-2.0
// See rewrite.h.
#include "runtime/image/rewrite.h"

#include <regex.h>

#include <memory>
#include <string_view>

#include "runtime/base/text.h"

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

// What regcomp(3) takes for something else than Go's expressions, which k3s reads: "\d" for a d, "[\w]" for a backslash or a w,
// "[\-a]" for a range that begins with a backslash, a lazy "*?" for a greedy one. "": nothing.
std::string unlike_go(std::string_view pattern) {
  constexpr std::string_view kSame = "wWsSbB", kRepetitions = "*+?}";
  bool in_set = false;  // "[a-z]"
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i], next = i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    if (c == '\\') {
      const bool is_word = (next >= 'a' && next <= 'z') || (next >= 'A' && next <= 'Z') || (next >= '0' && next <= '9');
      const bool is_range = next == '-' && i + 2 < pattern.size() && pattern[i + 2] != ']';  // from the backslash
      if ((is_word && (in_set || kSame.find(next) == kSame.npos)) || (in_set && (next == ']' || is_range))) return {c, next};
      ++i;
    } else if (in_set) {
      const size_t end = c == '[' && next == ':' ? pattern.find(":]", i + 2) : pattern.npos;  // "[:alpha:]"
      if (end != pattern.npos) i = end + 1;
      else in_set = c != ']';
    } else if (c == '[') {
      in_set = true;
      if (next == '^') ++i;
      if (i + 1 < pattern.size() && pattern[i + 1] == ']') ++i;  // as the first one it belongs to the set
    } else if (next == '?' && (c == '(' || kRepetitions.find(c) != kRepetitions.npos)) {
      return {c, next};
    }
  }
  return {};
}

}  // namespace

Result<void> check_rewrite(const runtime::RegistryRewrite& rewrite) {
  if (std::string what = unlike_go(rewrite.pattern); !what.empty())
    return Error(Code::invalid, quoted(what) + " is not known in a POSIX extended regular expression");
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

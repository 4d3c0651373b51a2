// SPDX-License-Identifier: Apache-2.0
// See auth.h.
#include "runtime/image/fetch/auth.h"

#include <algorithm>

#include "runtime/base/text.h"
#include "runtime/image/fetch/http.h"

namespace coracle::image {
namespace {

bool is_token(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

struct Reader {
  std::string_view text;
  void skip(std::string_view what) { text.remove_prefix(std::min(text.find_first_not_of(what), text.size())); }
  std::string_view token() {
    size_t end = 0;
    while (end < text.size() && is_token(text[end])) ++end;
    std::string_view out = text.substr(0, end);
    text.remove_prefix(end);
    return out;
  }
  bool take(char c) {
    if (text.empty() || text[0] != c) return false;
    text.remove_prefix(1);
    return true;
  }
  std::string value() {  // token or quoted string
    if (!take('"')) return std::string(token());
    std::string out;
    while (!text.empty() && !take('"')) {
      if (text[0] == '\\' && text.size() > 1) text.remove_prefix(1);
      out += text[0];
      text.remove_prefix(1);
    }
    return out;
  }
};

}  // namespace

std::vector<Challenge> parse_challenges(std::string_view header) {
  std::vector<Challenge> out;
  Reader reader{header};
  while (!reader.text.empty()) {
    reader.skip(" \t,");
    std::string name = to_lower(reader.token());
    if (name.empty()) break;
    reader.skip(" \t");
    if (reader.take('=')) {  // name=value belongs to the preceding challenge
      reader.skip(" \t");
      std::string value = reader.value();
      if (!out.empty()) out.back().params.emplace(std::move(name), std::move(value));
    } else {
      out.push_back({std::move(name), {}});
    }
  }
  return out;
}

Result<void> check_realm(const std::string& realm, const ChallengedBy& by, bool with_credentials) {
  const std::string origin = origin_of(realm), shown = coracle::quoted(shown_url(realm)), host = host_of_origin(origin);
  if (origin.empty()) return Error(Code::invalid, "the registry names no place to get a token from");
  bool encrypted = origin.starts_with("https:");
  if (by.origin.starts_with("https:") && by.verified && !encrypted)
    return Error(Code::forbidden, "the registry asks for a token to be fetched unencrypted from " + shown);
  if (is_local_host(host) && !by.is_local)
    return Error(Code::forbidden,
                 "the registry asks for a token to be fetched from this machine itself or its link, at " + shown);
  bool same_host = host == host_of_origin(by.origin) || (by.is_local && is_local_host(host));
  if (with_credentials && !encrypted && !same_host)
    return Error(Code::forbidden, "the registry asks for the credentials to be sent unencrypted to another host, at " + shown);
  return {};
}

}  // namespace coracle::image

// SPDX-License-Identifier: Apache-2.0
// ContinueToken. See continue_token.h.
#include "store/engine/continue_token.h"

#include "runtime/base/json.h"
#include "runtime/base/text.h"

namespace coracle::engine {

std::string ContinueToken::text() const {
  json::object token{{"v", "meta.k8s.io/v1"}, {"rv", revision}, {"start", after.text() + '\0'}};
  return base64url_encode(to_text(token));
}

Result<ContinueToken> ContinueToken::parse(std::string_view text, bool namespaced) {
  auto fail = [](const char* why) { return Error(Code::bad_request, std::string("continue key is not valid: ") + why); };
  auto bytes = base64url_decode(text);
  if (!bytes) return fail("not base64url");
  auto token = parse_json(*bytes);
  if (!token || get_string(*token, "v") != "meta.k8s.io/v1") return fail("not a token of this version");
  std::string_view start = get_string(*token, "start");
  if (!start.ends_with('\0')) return fail("no start");
  start.remove_suffix(1);
  size_t slash = start.find('/');
  if (namespaced != (slash != start.npos)) return fail("of another kind");
  ContinueToken parsed;
  parsed.revision = get_int(*token, "rv");
  if (parsed.revision < -1 || parsed.revision == 0) return fail("no revision");
  parsed.after.ns = namespaced ? start.substr(0, slash) : "";
  parsed.after.name = namespaced ? start.substr(slash + 1) : start;
  return parsed;
}

}  // namespace coracle::engine

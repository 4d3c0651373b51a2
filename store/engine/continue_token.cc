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
  auto fail = [](const std::string& why) {
    return Error(Code::bad_request, "invalid continue token: continue key is not valid" + why);
  };
  auto bytes = base64url_decode(text);
  if (!bytes) return fail(": illegal base64 data");
  auto token = parse_json(*bytes);
  if (!token || !token->is_object()) return fail(": not a JSON object");
  std::string_view version = get_string(*token, "v"), start = get_string(*token, "start");
  if (version != "meta.k8s.io/v1") return fail(": server does not recognize this encoded version " + std::string(version));
  if (start.empty()) return fail(": encoded start key empty (version meta.k8s.io/v1)");
  if (!start.ends_with('\0')) return fail(": " + std::string(start));
  start.remove_suffix(1);
  size_t slash = start.find('/');
  if (namespaced != (slash != start.npos)) return fail(": " + std::string(start));
  ContinueToken parsed;
  parsed.revision = get_int(*token, "rv");
  if (parsed.revision < -1 || parsed.revision == 0)
    return fail(": incorrect encoded start resourceVersion (version meta.k8s.io/v1)");
  parsed.after.ns = namespaced ? start.substr(0, slash) : "";
  parsed.after.name = namespaced ? start.substr(slash + 1) : start;
  return parsed;
}

}  // namespace coracle::engine

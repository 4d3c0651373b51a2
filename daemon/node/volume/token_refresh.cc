// SPDX-License-Identifier: Apache-2.0
// When a token in a volume is replaced, by the claims in it. They are no built-in kind, so they are read by their paths. Source:
// RFC 7519.
#include <algorithm>

#include "daemon/node/volume/volumes.h"
#include "runtime/base/text.h"

namespace coracle::node {

namespace {

constexpr std::chrono::hours kTokenAgeMax{24};

}  // namespace

std::optional<WallTime> token_refresh_time(std::string_view token) {
  auto parts = split(token, '.');
  if (parts.size() != 3) return std::nullopt;
  auto text = base64url_decode(parts[1]);
  if (!text) return std::nullopt;
  auto claims = parse_json(*text);
  if (!claims) return std::nullopt;
  int64_t issued = get_int(*claims, "iat"), expires = get_int(*claims, "exp");
  if (issued <= 0 || expires <= issued) return std::nullopt;
  auto life = std::min<std::chrono::seconds>(std::chrono::seconds((expires - issued) * 4 / 5), kTokenAgeMax);
  return WallTime(std::chrono::seconds(issued)) + life;
}

}  // namespace coracle::node

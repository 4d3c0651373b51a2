// SPDX-License-Identifier: Apache-2.0
// Texts in Secrets, and their comparison in a time that does not tell how much of them fits.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/json.h"
#include "runtime/base/text.h"

namespace coracle::access {

// The plain text at data[key]; "" when there is none.
inline std::string secret_text(const json::value& secret, std::string_view key) {
  const json::value* found = get_object(secret, "data").if_contains(key);
  const json::string* text = found ? found->if_string() : nullptr;
  auto plain = text ? base64_decode(std::string_view(*text)) : Result<std::string>(std::string());
  return plain ? *std::move(plain) : std::string();
}

inline bool same_secret(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned char differing = 0;
  for (size_t i = 0; i < a.size(); ++i) differing |= static_cast<unsigned char>(a[i] ^ b[i]);
  return differing == 0;
}

}  // namespace coracle::access

// SPDX-License-Identifier: Apache-2.0
// Reading values of Secrets, and comparing them in constant time.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/json.h"
#include "runtime/base/text.h"
#include "store/schema/views.h"

namespace coracle::auth {

// The decoded text of data[key]; "" if it is absent.
inline std::string secret_text(const json::value& secret, std::string_view key) {
  const json::value* found = view::Secret(secret).data().if_contains(key);
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

}  // namespace coracle::auth

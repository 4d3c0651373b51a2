// SPDX-License-Identifier: Apache-2.0
// Reading values of Secrets, and comparing them in constant time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
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

// The time depends on the sizes alone.
inline bool same_secret(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  auto word = [](std::string_view text, size_t at) {
    uint64_t bytes = 0;
    std::memcpy(&bytes, text.data() + at, std::min(sizeof bytes, text.size() - at));
    return bytes;
  };
  uint64_t differing = 0;
  for (size_t at = 0; at < a.size(); at += sizeof differing) differing |= word(a, at) ^ word(b, at);
  return differing == 0;
}

}  // namespace coracle::auth

// SPDX-License-Identifier: Apache-2.0
// Reading values of Secrets, and comparing them in constant time.
#pragma once

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
  auto differ = [&](size_t at, size_t size) {
    uint64_t of_a = 0, of_b = 0;
    std::memcpy(&of_a, a.data() + at, size);
    std::memcpy(&of_b, b.data() + at, size);
    return of_a ^ of_b;
  };
  constexpr size_t kWord = sizeof(uint64_t);
  uint64_t differing = 0;
  size_t at = 0;
  for (; at + kWord <= a.size(); at += kWord) differing |= differ(at, kWord);  // a fixed size, so that it is no call
  differing |= differ(at, a.size() - at);
  return differing == 0;
}

}  // namespace coracle::auth

// SPDX-License-Identifier: Apache-2.0
// See identity.h.
#include "daemon/registry/identity.h"

#include <array>
#include <cstdint>

#include "runtime/base/random.h"

namespace coracle::registry {

std::string make_uid() {
  std::array<uint8_t, 16> bytes;
  draw_random(bytes);
  bytes[6] = uint8_t((bytes[6] & 0x0f) | 0x40);  // version 4
  bytes[8] = uint8_t((bytes[8] & 0x3f) | 0x80);  // variant of RFC 9562
  std::string text(36, '-');
  size_t at = 0;
  for (size_t i = 0; i < bytes.size(); i++) {
    if (i == 4 || i == 6 || i == 8 || i == 10) at++;
    text[at++] = "0123456789abcdef"[bytes[i] >> 4];
    text[at++] = "0123456789abcdef"[bytes[i] & 15];
  }
  return text;
}

std::string random_suffix(size_t length) {
  static constexpr std::string_view kAlphabet = "bcdfghjklmnpqrstvwxz2456789";
  std::string text;
  while (text.size() < length) text += kAlphabet[random_below(kAlphabet.size())];
  return text;
}

std::string generate_name(std::string_view prefix) {
  return std::string(prefix.substr(0, kGeneratedPrefixMax)) + random_suffix();
}

}  // namespace coracle::registry

// SPDX-License-Identifier: Apache-2.0
// See identity.h. Every bit comes from the system's random source.
#include "daemon/registry/identity.h"

#include <cstdint>
#include <random>

namespace coracle::registry {

std::string make_uid() {
  std::random_device source;
  uint32_t words[4] = {source(), source(), source(), source()};
  words[1] = (words[1] & 0xffff0fffu) | 0x4000u;      // version 4
  words[2] = (words[2] & 0x3fffffffu) | 0x80000000u;  // variant of RFC 9562
  std::string text;
  for (int i = 0; i < 32; i++) {
    if (i == 8 || i == 12 || i == 16 || i == 20) text += '-';
    text += "0123456789abcdef"[words[i / 8] >> (28 - 4 * (i % 8)) & 15];
  }
  return text;
}

std::string random_suffix(size_t length) {
  static constexpr std::string_view kAlphabet = "bcdfghjklmnpqrstvwxz2456789";
  std::random_device source;
  std::uniform_int_distribution<size_t> pick(0, kAlphabet.size() - 1);
  std::string text;
  while (text.size() < length) text += kAlphabet[pick(source)];
  return text;
}

std::string generate_name(std::string_view prefix) { return std::string(prefix.substr(0, kGeneratedPrefixMax)) + random_suffix(); }

}  // namespace coracle::registry

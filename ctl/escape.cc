// SPDX-License-Identifier: Apache-2.0
// See escape.h.
#include "ctl/escape.h"

#include <cstdint>
#include <cstdio>

#include "runtime/base/text.h"

namespace coracle::ctl {
namespace {

// The number of bytes of the UTF-8 character in `text` at `at`; 0 if the bytes are not valid UTF-8.
size_t character_size(std::string_view text, size_t at) {
  auto first = uint8_t(text[at]);
  size_t size = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
  return size > 0 && is_utf8(text.substr(at, size)) && text.size() - at >= size ? size : 0;
}

uint32_t code_point(std::string_view character) {
  auto first = uint8_t(character[0]);
  uint32_t code = character.size() == 1 ? first : first & (0xff >> (character.size() + 1));
  for (char c : character.substr(1)) code = code << 6 | (uint8_t(c) & 0x3f);
  return code;
}

bool is_obeyed(uint32_t code) {
  return (code >= 0x80 && code < 0xa0)                         // C1 controls: U+009B starts an escape sequence like ESC [
         || code == 0x61c || code == 0x200e || code == 0x200f  // direction marks
         || (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069)  // embeddings, overrides, isolates
         || code == 0x2028 || code == 0x2029;                                         // line and paragraph separators
}

std::string visible(std::string_view text, bool lines) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    size_t size = character_size(text, at);
    std::string_view character = text.substr(at, size > 0 ? size : 1);
    at += character.size();
    char escaped[16];
    if (size == 0) {
      std::snprintf(escaped, sizeof escaped, "\\x%02x", unsigned(uint8_t(character[0])));
      out += escaped;
      continue;
    }
    uint32_t code = code_point(character);
    if (lines && (code == '\n' || code == '\t')) {
      out += character;
    } else if (code == '\r' || code == '\n' || code == '\t') {
      out += code == '\r' ? "\\r" : code == '\n' ? "\\n" : "\\t";
    } else if (code < 0x20 || code == 0x7f) {
      out += '^';
      out += char(code ^ 0x40);
    } else if (is_obeyed(code)) {
      std::snprintf(escaped, sizeof escaped, "\\u%04x", unsigned(code));
      out += escaped;
    } else {
      out += character;
    }
  }
  return out;
}

}  // namespace

std::string visible_line(std::string_view text) { return visible(text, false); }
std::string visible_lines(std::string_view text) { return visible(text, true); }

}  // namespace coracle::ctl

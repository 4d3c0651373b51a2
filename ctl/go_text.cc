// SPDX-License-Identifier: Apache-2.0
// See go_text.h.
#include "ctl/go_text.h"

#include <locale.h>
#include <wctype.h>

#include <algorithm>
#include <iterator>

namespace coracle::ctl {
namespace {

constexpr const char* kHexDigits = "0123456789abcdef";

struct Range {
  char32_t first, last;
};

// Spaces, format characters and private ones: the C library takes them for printable, Go does not.
constexpr Range kNotPrintable[] = {
    {0x00a0, 0x00a0},   {0x00ad, 0x00ad},   {0x0600, 0x0605},   {0x061c, 0x061c},   {0x06dd, 0x06dd},   {0x070f, 0x070f},
    {0x0890, 0x0891},   {0x08e2, 0x08e2},   {0x1680, 0x1680},   {0x180e, 0x180e},   {0x2000, 0x200f},   {0x2028, 0x202f},
    {0x205f, 0x206f},   {0x3000, 0x3000},   {0xd800, 0xf8ff},   {0xfeff, 0xfeff},   {0xfff9, 0xfffb},   {0x110bd, 0x110bd},
    {0x110cd, 0x110cd}, {0x13430, 0x1343f}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0001, 0xe007f}, {0xf0000, 0x10ffff},
};

bool in_ranges(char32_t rune, const Range* begin, const Range* end) {
  const Range* found = std::upper_bound(begin, end, rune, [](char32_t value, const Range& range) { return value < range.first; });
  return found != begin && rune <= std::prev(found)->last;
}

locale_t utf8_locale() {
  static const locale_t locale = ::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  return locale;
}

Error syntax_error() { return Error(Code::invalid, "invalid syntax"); }

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

void append_hex(std::string& out, char32_t value, int digits) {
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) out += kHexDigits[(value >> shift) & 0xf];
}

void append_escaped(std::string& out, Rune rune, char byte, char quote, bool ascii) {
  if (rune.broken()) {
    out += "\\x";
    return append_hex(out, uint8_t(byte), 2);
  }
  char32_t c = rune.value;
  if (c == char32_t(quote) || c == '\\') return void((out += '\\') += char(c));
  if ((!ascii || c < 0x80) && is_printable(c)) return append_rune(out, c);
  constexpr std::string_view kNamed = "\a\b\f\n\r\t\v", kNames = "abfnrtv";
  if (size_t at = c < 0x80 ? kNamed.find(char(c)) : kNamed.npos; at != kNamed.npos) return void((out += '\\') += kNames[at]);
  if (c < ' ' || c == 0x7f) {
    out += "\\x";
    return append_hex(out, c, 2);
  }
  if (!is_rune(c)) c = kRuneError;
  out += c < 0x10000 ? "\\u" : "\\U";
  append_hex(out, c, c < 0x10000 ? 4 : 8);
}

// The value of `digits` hexadecimal digits, which are removed. Errors: invalid.
Result<char32_t> take_hex(std::string_view& text, size_t digits) {
  if (text.size() < digits) return syntax_error();
  char32_t value = 0;
  for (char c : text.substr(0, digits)) {
    int digit = hex_value(c);
    if (digit < 0) return syntax_error();
    value = value << 4 | char32_t(digit);
  }
  text.remove_prefix(digits);
  return value;
}

}  // namespace

Rune first_rune(std::string_view text) {
  if (text.empty()) return {};
  auto byte = [&](size_t i) { return uint8_t(text[i]); };
  uint8_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  size_t width = lead >= 0xc2 && lead < 0xe0 ? 2 : lead >= 0xe0 && lead < 0xf0 ? 3 : lead >= 0xf0 && lead < 0xf5 ? 4 : 0;
  if (width == 0 || text.size() < width) return {kRuneError, 1};
  char32_t value = lead & (0xff >> (width + 1));
  for (size_t i = 1; i < width; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {kRuneError, 1};
    value = value << 6 | (byte(i) & 0x3f);
  }
  bool overlong = (width == 3 && value < 0x800) || (width == 4 && value < 0x10000);
  if (overlong || !is_rune(value)) return {kRuneError, 1};
  return {value, width};
}

size_t count_runes(std::string_view text) {
  size_t count = 0;
  for (; !text.empty(); ++count) text.remove_prefix(first_rune(text).width);
  return count;
}

std::string_view first_runes(std::string_view text, size_t count) {
  size_t end = 0;
  for (; count > 0 && end < text.size(); --count) end += first_rune(text.substr(end)).width;
  return text.substr(0, end);
}

void append_rune(std::string& out, char32_t rune) {
  if (!is_rune(rune)) rune = kRuneError;
  if (rune < 0x80) {
    out += char(rune);
  } else if (rune < 0x800) {
    (out += char(0xc0 | rune >> 6)) += char(0x80 | (rune & 0x3f));
  } else if (rune < 0x10000) {
    ((out += char(0xe0 | rune >> 12)) += char(0x80 | (rune >> 6 & 0x3f))) += char(0x80 | (rune & 0x3f));
  } else {
    (out += char(0xf0 | rune >> 18)) += char(0x80 | (rune >> 12 & 0x3f));
    (out += char(0x80 | (rune >> 6 & 0x3f))) += char(0x80 | (rune & 0x3f));
  }
}

bool is_rune(char32_t rune) { return rune < 0xd800 || (rune > 0xdfff && rune <= kRuneMax); }

bool is_printable(char32_t rune) {
  if (rune < 0x80) return rune >= ' ' && rune < 0x7f;
  if (in_ranges(rune, std::begin(kNotPrintable), std::end(kNotPrintable))) return false;
  return !utf8_locale() || ::iswprint_l(wint_t(rune), utf8_locale());
}

bool is_alphanumeric(char32_t rune) {
  if (rune < 0x80) return (rune >= '0' && rune <= '9') || (rune >= 'a' && rune <= 'z') || (rune >= 'A' && rune <= 'Z');
  return is_rune(rune) && (!utf8_locale() || ::iswalnum_l(wint_t(rune), utf8_locale()));
}

bool is_space_rune(char32_t rune) {
  return (rune >= '\t' && rune <= '\r') || rune == ' ' || rune == 0x85 || rune == 0xa0 || rune == 0x1680 ||
         (rune >= 0x2000 && rune <= 0x200a) || rune == 0x2028 || rune == 0x2029 || rune == 0x202f || rune == 0x205f ||
         rune == 0x3000;
}

std::string go_quoted(std::string_view text, char quote, bool ascii) {
  std::string out(1, quote);
  while (!text.empty()) {
    Rune rune = first_rune(text);
    append_escaped(out, rune, text.front(), quote, ascii);
    text.remove_prefix(rune.width);
  }
  return out += quote;
}

std::string go_quoted_rune(char32_t rune, bool ascii) {
  std::string out = "'";
  append_escaped(out, {is_rune(rune) ? rune : kRuneError, 3}, ' ', '\'', ascii);
  return out += '\'';
}

std::string shown_rune(char32_t rune) {
  std::string digits;
  append_hex(digits, rune, rune < 0x10000 ? 4 : rune < 0x100000 ? 5 : 6);
  for (char& c : digits) c = c >= 'a' ? char(c - 'a' + 'A') : c;
  std::string out = "U+" + digits;
  if (!is_printable(rune)) return out;
  out += " '";
  append_rune(out, rune);
  return out += '\'';
}

Result<UnquotedChar> take_unquoted(std::string_view& text, char quote) {
  if (text.empty() || (text.front() == quote && (quote == '\'' || quote == '"'))) return syntax_error();
  char c = text.front();
  if (uint8_t(c) >= 0x80) {
    Rune rune = first_rune(text);
    text.remove_prefix(rune.width);
    return UnquotedChar{rune.value, true};
  }
  text.remove_prefix(1);
  if (c != '\\') return UnquotedChar{char32_t(c), false};
  if (text.empty()) return syntax_error();
  c = text.front();
  text.remove_prefix(1);
  constexpr std::string_view kNames = "abfnrtv\\", kNamed = "\a\b\f\n\r\t\v\\";
  if (size_t at = kNames.find(c); at != kNames.npos) return UnquotedChar{char32_t(kNamed[at]), false};
  switch (c) {
    case 'x': {
      char32_t value = TRY(take_hex(text, 2));
      return UnquotedChar{value, false};
    }
    case 'u':
    case 'U': {
      char32_t value = TRY(take_hex(text, c == 'u' ? 4 : 8));
      if (!is_rune(value)) return syntax_error();
      return UnquotedChar{value, true};
    }
    case '\'':
    case '"':
      if (c != quote) return syntax_error();
      return UnquotedChar{char32_t(c), false};
    default: break;
  }
  if (c < '0' || c > '7' || text.size() < 2) return syntax_error();
  char32_t value = char32_t(c - '0');
  for (char digit : text.substr(0, 2)) {
    if (digit < '0' || digit > '7') return syntax_error();
    value = value << 3 | char32_t(digit - '0');
  }
  text.remove_prefix(2);
  if (value > 255) return syntax_error();
  return UnquotedChar{value, false};
}

Result<std::string> unquoted_extended(std::string_view literal) {
  if (literal.size() < 2 || literal.front() != literal.back()) return syntax_error();
  char quote = literal.front();
  if (quote != '"' && quote != '\'') return syntax_error();
  std::string_view text = literal.substr(1, literal.size() - 2);
  if (text.find('\\') == text.npos && text.find(quote) == text.npos) return std::string(text);
  std::string out;
  while (!text.empty()) {
    UnquotedChar c = TRY(take_unquoted(text, quote));
    if (c.value < 0x80 || !c.multibyte) out += char(c.value);
    else append_rune(out, c.value);
  }
  return out;
}

Result<std::string> go_unquoted(std::string_view literal) {
  if (literal.size() < 2 || literal.front() != literal.back()) return syntax_error();
  std::string_view text = literal.substr(1, literal.size() - 2);
  if (literal.front() == '`') {
    if (text.find('`') != text.npos) return syntax_error();
    std::string out(text);
    out.erase(std::remove(out.begin(), out.end(), '\r'), out.end());
    return out;
  }
  if (literal.front() != '"') return syntax_error();
  std::string out;
  while (!text.empty()) {
    if (text.front() == '\n') return syntax_error();
    UnquotedChar c = TRY(take_unquoted(text, '"'));
    if (c.value < 0x80 || !c.multibyte) out += char(c.value);
    else append_rune(out, c.value);
  }
  return out;
}

}  // namespace coracle::ctl

// SPDX-License-Identifier: Apache-2.0
// See text.h.
#include "runtime/base/text.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace coracle {
namespace {

constexpr std::string_view kBase64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::string_view kBase64Url = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

std::string encode64(std::string_view bytes, std::string_view alphabet, bool pad) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    size_t left = std::min<size_t>(3, bytes.size() - i);
    uint32_t group = uint32_t(uint8_t(bytes[i])) << 16;
    if (left > 1) group |= uint32_t(uint8_t(bytes[i + 1])) << 8;
    if (left > 2) group |= uint8_t(bytes[i + 2]);
    for (size_t j = 0; j <= left; ++j) out += alphabet[(group >> (18 - 6 * j)) & 63];
    if (pad) out.append(3 - left, '=');
  }
  return out;
}

Result<std::string> decode64(std::string_view text, std::string_view alphabet, bool padded) {
  std::array<int8_t, 256> value;
  value.fill(-1);
  for (size_t i = 0; i < alphabet.size(); ++i) value[uint8_t(alphabet[i])] = int8_t(i);
  if (padded && text.size() % 4 != 0) return Error(Code::invalid, "base64 text has the wrong length");
  for (int i = 0; i < 2 && !text.empty() && text.back() == '='; ++i) text.remove_suffix(1);
  if (text.size() % 4 == 1) return Error(Code::invalid, "base64 text has the wrong length");
  std::string out;
  out.reserve(text.size() * 3 / 4);
  uint32_t group = 0;
  int bits = 0;
  for (char c : text) {
    if (value[uint8_t(c)] < 0) return Error(Code::invalid, "illegal character in base64 text");
    group = group << 6 | uint32_t(value[uint8_t(c)]);
    bits += 6;
    if (bits >= 8) out += char(uint8_t(group >> (bits -= 8)));
  }
  return out;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t at = 0;;) {
    size_t end = text.find(separator, at);
    parts.push_back(text.substr(at, end == text.npos ? text.npos : end - at));
    if (end == text.npos) return parts;
    at = end + 1;
  }
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  size_t size = parts.size() * separator.size();
  for (const std::string& part : parts) size += part.size();
  std::string out;
  out.reserve(size);
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i) out += separator;
    out += parts[i];
  }
  return out;
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  size_t first = text.find_first_not_of(kSpace);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

uint32_t fnv1a(std::string_view bytes) {
  uint32_t hash = 2166136261u;
  for (char byte : bytes) hash = (hash ^ uint8_t(byte)) * 16777619u;
  return hash;
}

std::string to_lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = char(c + ('a' - 'A'));
  return out;
}

bool is_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    auto lead = uint8_t(text[i++]);
    if (lead < 0x80) continue;
    int more = lead >= 0xc2 && lead < 0xe0 ? 1 : (lead & 0xf0) == 0xe0 ? 2 : lead >= 0xf0 && lead < 0xf5 ? 3 : 0;
    if (!more || i + size_t(more) > text.size()) return false;
    uint32_t point = lead & (0x3fu >> more);
    for (int n = more; n > 0; --n, ++i) {
      if ((uint8_t(text[i]) & 0xc0) != 0x80) return false;
      point = point << 6 | (uint8_t(text[i]) & 0x3fu);
    }
    if ((more == 2 && (point < 0x800 || (point >= 0xd800 && point < 0xe000))) ||
        (more == 3 && (point < 0x10000 || point > 0x10ffff)))
      return false;
  }
  return true;
}

std::string as_utf8(std::string_view bytes) {
  constexpr size_t kCharacterMax = 4;
  if (is_utf8(bytes)) return std::string(bytes);
  std::string text;
  while (!bytes.empty()) {
    size_t length = 1;
    while (length <= std::min(kCharacterMax, bytes.size()) && !is_utf8(bytes.substr(0, length))) ++length;
    bool character = length <= std::min(kCharacterMax, bytes.size());
    text += character ? bytes.substr(0, length) : std::string_view("\xef\xbf\xbd");
    bytes.remove_prefix(character ? length : 1);
  }
  return text;
}

std::string shortened_text(std::string text, size_t bytes_max) {
  if (text.size() <= bytes_max) return text;
  size_t end = bytes_max;
  while (end > 0 && (uint8_t(text[end]) & 0xc0) == 0x80) end--;  // not inside a character
  text.erase(end);
  return text + "...";
}

std::string hex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (char c : bytes) out.append(1, kDigits[uint8_t(c) >> 4]).append(1, kDigits[uint8_t(c) & 15]);
  return out;
}

std::string base64_encode(std::string_view bytes) { return encode64(bytes, kBase64, true); }
Result<std::string> base64_decode(std::string_view text) { return decode64(text, kBase64, true); }
std::string base64url_encode(std::string_view bytes) { return encode64(bytes, kBase64Url, false); }
Result<std::string> base64url_decode(std::string_view text) { return decode64(text, kBase64Url, false); }

std::string percent_encode(std::string_view text) {
  constexpr char kDigits[] = "0123456789ABCDEF";  // RFC 3986 wants capitals, as Go writes them
  std::string out;
  for (char c : text) {
    bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' ||
                 c == '~';
    if (plain) out += c;
    else (((out += '%') += kDigits[uint8_t(c) >> 4]) += kDigits[uint8_t(c) & 15]);
  }
  return out;
}

Result<std::string> percent_decode(std::string_view text) {
  size_t first = std::min(text.find('%'), text.size());
  std::string out(text.substr(0, first));
  out.reserve(text.size());
  for (size_t i = first; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
    int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
    if (high < 0 || low < 0) return Error(Code::invalid, "invalid percent-encoding in " + quoted(text));
    out += char(high * 16 + low);
    i += 2;
  }
  return out;
}

namespace {

void append_visibly(std::string& out, char c) {
  switch (c) {
    case '\n': out += "\\n"; break;
    case '\t': out += "\\t"; break;
    case '\r': out += "\\r"; break;
    default:
      if (uint8_t(c) < 0x20 || c == 0x7f) out.append("\\x").append(hex(std::string_view(&c, 1)));
      else out += c;
  }
}

}  // namespace

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    append_visibly(out, c);
  }
  return out + "\"";
}

std::string one_line(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (char c : text) append_visibly(out, c);
  return out;
}

std::string_view userinfo_of(std::string_view url) {
  if (const size_t scheme = url.find("://"); scheme != url.npos) url.remove_prefix(scheme + 3);
  std::string_view authority = url.substr(0, url.find_first_of("/?#"));
  const size_t colon = authority.rfind(':');
  const bool has_port = colon == authority.npos || authority.ends_with(']') ||
                        authority.find_first_not_of("0123456789", colon + 1) == authority.npos;
  if (authority.find('@') == authority.npos && !has_port) authority = url;
  const size_t at = authority.rfind('@');
  return at == authority.npos ? std::string_view() : authority.substr(0, at);
}

std::string shown_path(const std::vector<std::string>& names) {
  std::vector<std::string> shown;
  for (const std::string& name : names) shown.push_back(userinfo_of(name).empty() ? name : shown_url(name));
  return join(shown, ".");
}

std::string shown_url(std::string_view url) {
  const std::string_view who = userinfo_of(url);
  const size_t begin = who.empty() ? 0 : size_t(who.data() - url.data()), end = who.empty() ? 0 : begin + who.size() + 1;
  std::string out(url.substr(0, begin));
  url.remove_prefix(end);
  return out.append(url.substr(0, url.find('?')));
}

}  // namespace coracle

// SPDX-License-Identifier: Apache-2.0
// Small pure functions on text: splitting, numbers that must span the whole input, encodings.
#pragma once

#include <charconv>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace coracle {

std::vector<std::string_view> split(std::string_view text, char separator);  // "a,,b" has three parts, "" has one
std::string join(const std::vector<std::string>& parts, std::string_view separator);
std::string_view trim(std::string_view text);  // drops spaces, tabs, CR and LF at both ends
uint32_t fnv1a(std::string_view bytes);        // the 32-bit FNV-1a hash; stable across builds and machines
std::string to_lower(std::string_view text);   // ASCII

// All of `text` as a number in that base, or nothing: no sign for unsigned types, no spaces, no trailing bytes.
template <std::integral T>
std::optional<T> parse_number(std::string_view text, int base = 10) {
  T value{};
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool is_utf8(std::string_view text);                             // well-formed, RFC 3629
std::string as_utf8(std::string_view bytes);                     // invalid bytes become U+FFFD
std::string shortened_text(std::string text, size_t bytes_max);  // cuts UTF-8 text to that many bytes and appends "..."
std::string hex(std::string_view bytes);
std::string base64_encode(std::string_view bytes);            // RFC 4648 section 4, padded
Result<std::string> base64_decode(std::string_view text);     // Errors: invalid
std::string base64url_encode(std::string_view bytes);         // RFC 4648 section 5, no padding
Result<std::string> base64url_decode(std::string_view text);  // padding optional. Errors: invalid
std::string percent_encode(std::string_view text);            // everything but RFC 3986 unreserved
Result<std::string> percent_decode(std::string_view text);    // Errors: invalid
std::string quoted(std::string_view text);                    // Go's %q for ordinary text: quotes, \n, \t, \xNN
std::string one_line(std::string_view text);                  // escapes control characters and line breaks as quoted() does
// A URL for errors and logs: without the user and password in it, and without its query, which may be a signature.
std::string shown_url(std::string_view url);
// "user:password" of "https://user:password@host/"; "": it has none. A password with a /, ? or # that should have been encoded is
// recognized by what stands in the place of the port.
std::string_view userinfo_of(std::string_view url);
// The names of nested fields for errors: "host.https://mirror.ca". URLs among them are without user and password.
std::string shown_path(const std::vector<std::string>& names);
// Overloads for std::string: without them std::quoted would be a better match if a header includes it.
inline std::string quoted(const std::string& text) { return quoted(std::string_view(text)); }
inline std::string quoted(const char* text) { return quoted(std::string_view(text)); }
inline std::string quoted(std::string& text) { return quoted(std::string_view(text)); }

}  // namespace coracle

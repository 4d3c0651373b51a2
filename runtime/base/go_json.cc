// SPDX-License-Identifier: Apache-2.0
// See go_json.h.
#include "runtime/base/go_json.h"

#include <algorithm>
#include <optional>

#include "runtime/base/text.h"

namespace coracle {
namespace {

constexpr size_t kEscapeBytes = 6;  // \u12ab

// The UTF-16 unit of an escape at the beginning of `text`.
std::optional<uint32_t> escaped_unit(std::string_view text) {
  if (!text.starts_with("\\u") || text.size() < kEscapeBytes) return std::nullopt;
  return parse_number<uint32_t>(text.substr(2, 4), 16);
}

// The size of the character at the beginning of `text`, which is not ASCII; 0: it is no Unicode.
size_t character_bytes(std::string_view text) {
  constexpr size_t kCharacterMax = 4;
  for (size_t length = 2; length <= std::min(kCharacterMax, text.size()); ++length)
    if (is_utf8(text.substr(0, length))) return length;
  return 0;
}

// A part of a text that is no Unicode, and what stands for it.
struct Flaw {
  size_t at = 0, bytes = 0;  // bytes: 0 at the end of the text
  std::string_view instead;
};

// The first flaw from `at` on, which is not inside an escape. Escapes occur only in strings.
Flaw next_flaw(std::string_view text, size_t at) {
  while (at < text.size()) {
    std::string_view left = text.substr(at);
    if (left[0] == '\\') {
      auto unit = escaped_unit(left), next = left.size() > kEscapeBytes ? escaped_unit(left.substr(kEscapeBytes)) : std::nullopt;
      bool surrogate = unit && *unit >= 0xd800 && *unit < 0xe000;
      bool whole = surrogate && *unit < 0xdc00 && next && *next >= 0xdc00 && *next < 0xe000;
      if (surrogate && !whole) return {at, kEscapeBytes, "\\ufffd"};
      at += whole ? 2 * kEscapeBytes : unit ? kEscapeBytes : 2;
    } else if (uint8_t(left[0]) < 0x80) {
      ++at;
    } else if (size_t bytes = character_bytes(left)) {
      at += bytes;
    } else {
      return {at, 1, "\xef\xbf\xbd"};
    }
  }
  return {};
}

// The text of the same JSON with U+FFFD for its flaws, of which `flaw` is the first. Errors: too_large.
Result<std::string> without_flaws(std::string_view text, Flaw flaw, size_t bytes_max) {
  std::string out;
  size_t done = 0;  // bytes of the text
  for (; flaw.bytes; flaw = next_flaw(text, done)) {
    out.append(text.substr(done, flaw.at - done)).append(flaw.instead);
    done = flaw.at + flaw.bytes;
    if (out.size() + (text.size() - done) > bytes_max)
      return Error(Code::too_large, "Request entity too large: limit is " + std::to_string(bytes_max) +
                                        "; with U+FFFD for each byte that is no Unicode the text is larger");
  }
  out.append(text.substr(done));
  return out;
}

}  // namespace

Result<json::value> parse_json_as_go(std::string_view text, size_t bytes_max, std::vector<DuplicateKey>* duplicates,
                                     json::storage_ptr storage) {
  auto value = parse_json(text, duplicates, storage);
  if (value) return value;
  Flaw first = next_flaw(text, 0);
  if (!first.bytes) return value;
  std::string whole = TRY(without_flaws(text, first, bytes_max));
  auto mended = parse_json(whole, duplicates, std::move(storage));
  return mended ? std::move(mended) : std::move(value);
}

std::optional<int64_t> integer_if_whole(double number) {
  constexpr double kEnd = 9223372036854775808.0;  // 2^63
  if (!(number >= -kEnd && number < kEnd) || double(int64_t(number)) != number) return std::nullopt;
  return int64_t(number);
}

void store_whole_numbers_as_integers(json::value& value) {
  if (json::object* object = value.if_object()) {
    for (auto& member : *object) store_whole_numbers_as_integers(member.value());
  } else if (json::array* items = value.if_array()) {
    for (json::value& item : *items) store_whole_numbers_as_integers(item);
  } else if (const double* number = value.if_double()) {
    if (auto whole = integer_if_whole(*number)) value = *whole;
  }
}

}  // namespace coracle

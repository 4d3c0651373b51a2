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

// The text of the same JSON with U+FFFD for what is no Unicode. Escapes occur only in strings.
std::string with_whole_characters(std::string_view text) {
  const std::string valid = as_utf8(text);
  std::string out;
  for (std::string_view left = valid; !left.empty();) {
    size_t plain = std::min(left.find('\\'), left.size());
    out += left.substr(0, plain);
    left.remove_prefix(plain);
    auto unit = escaped_unit(left), next = left.size() > kEscapeBytes ? escaped_unit(left.substr(kEscapeBytes)) : std::nullopt;
    bool surrogate = unit && *unit >= 0xd800 && *unit < 0xe000;
    bool whole = surrogate && *unit < 0xdc00 && next && *next >= 0xdc00 && *next < 0xe000;
    size_t taken = std::min(left.size(), whole ? 2 * kEscapeBytes : unit ? kEscapeBytes : 2);
    out += surrogate && !whole ? std::string_view("\\ufffd") : left.substr(0, taken);
    left.remove_prefix(taken);
  }
  return out;
}

}  // namespace

Result<json::value> parse_json_as_go(std::string_view text, std::vector<std::string>* duplicates, json::storage_ptr storage) {
  auto value = parse_json(text, duplicates, storage);
  if (value) return value;
  std::string whole = with_whole_characters(text);
  if (whole == text) return value;
  auto mended = parse_json(whole, duplicates, std::move(storage));
  return mended ? std::move(mended) : std::move(value);
}

}  // namespace coracle

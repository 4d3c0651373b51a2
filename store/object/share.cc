// SPDX-License-Identifier: Apache-2.0
// See share.h.
#include "store/object/share.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

#include "runtime/base/text.h"

namespace coracle {
namespace {

// Counts are 32-bit integers in the API. A larger percentage gives the largest count, and nothing overflows.
int64_t bounded_count(int64_t value) { return std::clamp<int64_t>(value, INT32_MIN, INT32_MAX); }

bool is_number_too_long(std::string_view digits) {
  return digits.size() > 18 && digits.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

int64_t scaled(const json::value* value, int64_t total, bool round_up, int64_t otherwise) {
  if (!value) return otherwise;
  if (value->is_int64()) return value->get_int64();
  if (value->is_uint64()) return int64_t(value->get_uint64());
  const json::string* text = value->if_string();
  if (!text || !text->ends_with('%')) return otherwise;
  std::string_view digits(text->data(), text->size() - 1);
  auto percent = is_number_too_long(digits) ? std::optional<int64_t>(INT64_MAX) : parse_number<int64_t>(digits);
  if (!percent) return otherwise;
  return bounded_count((bounded_count(*percent) * bounded_count(total) + (round_up ? 99 : 0)) / 100);
}

}  // namespace coracle

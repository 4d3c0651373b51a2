// SPDX-License-Identifier: Apache-2.0
// Quantity: Kubernetes' numbers with a suffix: "100m", "1.5Gi", "12e6". Exact: an integer number of 10^-9; smaller parts are
// rounded up, and values above 2^63-1 are capped. Text is canonical: no fraction, the largest suffix that keeps all digits, in
// the original notation. Source: apimachinery api/resource.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/json.h"
#include "runtime/base/result.h"
#include "runtime/base/units.h"

namespace coracle {

class Quantity {
 public:
  enum class Notation : uint8_t { decimal, binary, exponent };  // 1500M, 1536Mi, 12e6

  Quantity() = default;  // 0
  // Errors: invalid, with the text.
  static Result<Quantity> parse(std::string_view text);
  static Result<Quantity> from_json(const json::value& value);  // a string or a number
  static Quantity of(Bytes bytes);                              // binary notation
  static Quantity of(Millicores millicores);
  static Quantity of_count(int64_t count);

  std::string text() const;  // canonical
  Notation notation() const { return notation_; }

  // Rounded up to integers; capped to int64.
  int64_t value() const;
  int64_t milli_value() const;
  Quantity rounded_to_milli() const;  // away from 0, to multiples of 1/1000: the precision in resource lists
  Bytes bytes() const { return Bytes(value()); }
  Millicores millicores() const { return Millicores(milli_value()); }
  bool is_zero() const { return nanos_ == 0; }
  bool negative() const { return nanos_ < 0; }

  // Compares amounts, not notations: 1 == 1000m. Sums have the notation of the left side (of the right side if the left is 0).
  bool operator==(const Quantity& other) const { return nanos_ == other.nanos_; }
  std::strong_ordering operator<=>(const Quantity& other) const { return nanos_ <=> other.nanos_; }
  Quantity& operator+=(const Quantity& other);
  Quantity& operator-=(const Quantity& other);

 private:
  using Nanos = __int128;
  static Nanos capped(Nanos nanos);
  Nanos nanos_ = 0;  // at most (2^63-1) * 10^9 in either direction
  Notation notation_ = Notation::decimal;
};

}  // namespace coracle

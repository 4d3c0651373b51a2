// SPDX-License-Identifier: Apache-2.0
// Quantity: Kubernetes' numbers with a suffix: "100m", "1.5Gi", "12e6". Exact: a whole number of billionths; what is finer
// is rounded up, what exceeds 2^63-1 is that. Text is canonical: no fraction, the largest suffix that keeps all digits, in
// the notation it was written in. Source: apimachinery api/resource.
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
  // Errors: invalid, quoting the text.
  static Result<Quantity> parse(std::string_view text);
  static Result<Quantity> from_json(const json::value& value);  // a string or a number
  static Quantity of(Bytes bytes);                              // binary notation
  static Quantity of(Millicores millicores);
  static Quantity of_count(int64_t count);

  std::string text() const;  // canonical
  Notation notation() const { return notation_; }

  // Rounded up to whole units; capped to int64.
  int64_t value() const;
  int64_t milli_value() const;
  Quantity rounded_to_milli() const;  // away from 0, to whole thousandths: what a list of resources holds
  Bytes bytes() const { return Bytes(value()); }
  Millicores millicores() const { return Millicores(milli_value()); }
  bool is_zero() const { return nanos_ == 0; }
  bool negative() const { return nanos_ < 0; }

  // The amount counts, not the notation: 1 == 1000m. Sums keep the left side's notation (the other's when it is 0).
  bool operator==(const Quantity& other) const { return nanos_ == other.nanos_; }
  std::strong_ordering operator<=>(const Quantity& other) const { return nanos_ <=> other.nanos_; }
  Quantity& operator+=(const Quantity& other);
  Quantity& operator-=(const Quantity& other);

 private:
  using Nanos = __int128;
  static Nanos capped(Nanos nanos);
  Nanos nanos_ = 0;  // at most (2^63-1) * 10^9 either way
  Notation notation_ = Notation::decimal;
};

}  // namespace coracle

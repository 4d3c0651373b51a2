// SPDX-License-Identifier: Apache-2.0
// Quantity: Kubernetes' numbers with a suffix: "100m", "1.5Gi", "12e6". Exact: an integer number of 10^-9; smaller parts are
// rounded up, and values above 2^63-1 are capped. Text is canonical: no fraction, the largest suffix that keeps all digits, in
// the original notation. Source: apimachinery api/resource.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
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
  bool is_zero() const { return amount_.whole == 0 && amount_.nanos == 0; }
  bool negative() const { return negative_; }

  // Compares amounts, not notations: 1 == 1000m. Sums have the notation of the left side (of the right side if the left is 0).
  bool operator==(const Quantity& other) const { return negative_ == other.negative_ && amount_ == other.amount_; }
  std::strong_ordering operator<=>(const Quantity& other) const {
    if (negative_ != other.negative_) return negative_ ? std::strong_ordering::less : std::strong_ordering::greater;
    return negative_ ? other.amount_ <=> amount_ : amount_ <=> other.amount_;
  }
  Quantity& operator+=(const Quantity& other) { return add(other, other.negative_); }
  Quantity& operator-=(const Quantity& other) { return add(other, !other.negative_); }

 private:
  // whole + nanos / 10^9, at most 2^63-1. Two numbers, because processors of 32 bits have no integers of 128.
  struct Amount {
    uint64_t whole = 0;
    uint32_t nanos = 0;  // below 10^9
    auto operator<=>(const Amount&) const = default;
  };
  static Amount capped(Amount amount);
  static Amount sum(Amount a, Amount b);         // capped
  static Amount difference(Amount a, Amount b);  // a >= b
  // The digits times 10^exponent nanos, rounded up.
  static Amount nanos_of(std::string digits, int exponent);
  Quantity& add(const Quantity& other, bool negative);  // of its amount, with that sign
  void set(Amount amount, bool negative);

  Amount amount_;
  bool negative_ = false;  // 0 is not
  Notation notation_ = Notation::decimal;
};

// The amount of a resource in a resource list, such as a container's requests. nullopt: it is not in the list, or no quantity.
std::optional<Quantity> amount_in(const json::object& amounts, std::string_view name);

}  // namespace coracle

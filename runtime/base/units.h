// SPDX-License-Identifier: Apache-2.0
// Numbers with their unit in the type, so that bytes cannot be added to millicores.
#pragma once

#include <compare>
#include <cstdint>

namespace coracle {

template <typename Tag>
struct Unit {
  int64_t count = 0;
  constexpr Unit() = default;
  constexpr explicit Unit(int64_t value) : count(value) {}
  auto operator<=>(const Unit&) const = default;
  constexpr Unit operator+(Unit other) const { return Unit(count + other.count); }
  constexpr Unit operator-(Unit other) const { return Unit(count - other.count); }
  constexpr Unit& operator+=(Unit other) { return count += other.count, *this; }
};

using Bytes = Unit<struct BytesTag>;
using Millicores = Unit<struct MillicoresTag>;  // a thousandth of a CPU
using Revision = uint64_t;                      // the store's counter; "resourceVersion" only in JSON. 0 means none.

constexpr Bytes operator""_KiB(unsigned long long n) { return Bytes(int64_t(n) << 10); }
constexpr Bytes operator""_MiB(unsigned long long n) { return Bytes(int64_t(n) << 20); }

}  // namespace coracle

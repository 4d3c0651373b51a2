// SPDX-License-Identifier: Apache-2.0
// A range of IPv4 service addresses. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace coracle::kinds {

struct AddressRange {
  uint32_t base = 0;
  int prefix = 0;
  static Result<AddressRange> parse(std::string_view cidr);  // Errors: invalid
  bool contains(uint32_t address) const { return prefix == 0 || (address ^ base) >> (32 - prefix) == 0; }
  uint32_t first() const { return base + 1; }                                            // without the network address
  uint32_t last() const { return base + uint32_t((uint64_t(1) << (32 - prefix)) - 2); }  // without the broadcast address
};

std::optional<uint32_t> parse_address(std::string_view text);  // "10.96.0.1"
std::string address_text(uint32_t address);

}  // namespace coracle::kinds

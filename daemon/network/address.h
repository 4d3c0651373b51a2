// SPDX-License-Identifier: Apache-2.0
// Ipv4 and Ipv4Range: addresses as numbers, so that pools, rules and zones compare numbers instead of text. Parsing accepts only
// a complete address (four decimal octets and nothing else), so malformed text cannot reach a ruleset. Pods have IPv4 only. IPv6
// would need a second type, a table `ip6 coracle` and AAAA records. Source: RFC 791, 4632.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace coracle::network {

struct Ipv4 {
  uint32_t value = 0;  // in host byte order; 0 means none

  static Result<Ipv4> parse(std::string_view text);  // Errors: invalid
  std::string text() const;
  bool loopback() const { return value >> 24 == 127; }
  explicit operator bool() const { return value != 0; }
  auto operator<=>(const Ipv4&) const = default;
};

struct Ipv4Range {  // a block in CIDR notation
  Ipv4 base;
  int bits = 32;  // prefix length

  static Result<Ipv4Range> parse(std::string_view text);  // "10.244.0.0/24"; host bits must be 0. Errors: invalid
  std::string text() const;
  uint64_t size() const { return uint64_t(1) << (32 - bits); }
  uint32_t mask() const { return bits == 0 ? 0 : ~uint32_t(0) << (32 - bits); }
  bool contains(Ipv4 address) const { return (address.value & mask()) == base.value; }
  Ipv4 at(uint32_t offset) const { return Ipv4{base.value + offset}; }
  Ipv4 last() const { return at(uint32_t(size() - 1)); }  // the broadcast address
  auto operator<=>(const Ipv4Range&) const = default;
};

}  // namespace coracle::network

// SPDX-License-Identifier: Apache-2.0
// See address_range.h.
#include "store/kinds/service/server/address_range.h"

#include "runtime/base/text.h"

namespace coracle::kinds {

std::optional<uint32_t> parse_address(std::string_view text) {
  auto parts = split(text, '.');
  if (parts.size() != 4) return std::nullopt;
  uint32_t address = 0;
  for (std::string_view part : parts) {
    auto byte = parse_number<uint8_t>(part);
    if (!byte || (part.size() > 1 && part[0] == '0')) return std::nullopt;
    address = address << 8 | *byte;
  }
  return address;
}

std::string address_text(uint32_t address) {
  std::string text;
  for (int shift = 24; shift >= 0; shift -= 8) text += std::to_string(address >> shift & 255) + (shift ? "." : "");
  return text;
}

Result<AddressRange> AddressRange::parse(std::string_view cidr) {
  size_t slash = cidr.find('/');
  auto address = parse_address(cidr.substr(0, slash));
  auto prefix = slash == std::string_view::npos ? std::nullopt : parse_number<int>(cidr.substr(slash + 1));
  if (!address || !prefix || *prefix < 8 || *prefix > 28)
    return Error(Code::invalid, "not an IPv4 range with a prefix of 8 to 28: " + quoted(cidr));
  return AddressRange{*address & ~uint32_t((uint64_t(1) << (32 - *prefix)) - 1), *prefix};
}

}  // namespace coracle::kinds

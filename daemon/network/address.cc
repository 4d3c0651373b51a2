// SPDX-License-Identifier: Apache-2.0
// See address.h.
#include "daemon/network/address.h"

#include "runtime/base/text.h"

namespace coracle::network {

Result<Ipv4> Ipv4::parse(std::string_view text) {
  std::vector<std::string_view> parts = split(text, '.');
  Error refused(Code::invalid, quoted(text) + " is not an IPv4 address");
  if (parts.size() != 4) return refused;
  Ipv4 address;
  for (std::string_view part : parts) {
    std::optional<uint8_t> octet = parse_number<uint8_t>(part);
    // Rejects a leading zero, because some parsers read it as octal and others as decimal.
    if (!octet || (part.size() > 1 && part[0] == '0')) return refused;
    address.value = address.value << 8 | *octet;
  }
  return address;
}

std::string Ipv4::text() const {
  std::string out;
  for (int shift = 24; shift >= 0; shift -= 8) {
    out += std::to_string(value >> shift & 0xff);
    if (shift > 0) out += '.';
  }
  return out;
}

Result<Ipv4Range> Ipv4Range::parse(std::string_view text) {
  size_t slash = text.find('/');
  if (slash == std::string_view::npos) return Error(Code::invalid, quoted(text) + " has no prefix length");
  Ipv4Range range;
  range.base = TRY(Ipv4::parse(text.substr(0, slash)));
  std::optional<uint8_t> bits = parse_number<uint8_t>(text.substr(slash + 1));
  if (!bits || *bits > 32) return Error(Code::invalid, quoted(text) + " has no prefix length between 0 and 32");
  range.bits = *bits;
  if (!range.contains(range.base)) return Error(Code::invalid, quoted(text) + " has bits set beyond its prefix");
  return range;
}

std::string Ipv4Range::text() const { return base.text() + "/" + std::to_string(bits); }

}  // namespace coracle::network

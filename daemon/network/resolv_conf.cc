// SPDX-License-Identifier: Apache-2.0
// See resolv_conf.h.
#include "daemon/network/resolv_conf.h"

#include <algorithm>

#include "runtime/base/text.h"

namespace coracle::network {

std::vector<Ipv4> parse_nameservers(std::string_view text, const std::vector<Ipv4>& ours) {
  constexpr std::string_view kKeyword = "nameserver";
  auto has = [](const std::vector<Ipv4>& list, Ipv4 address) {
    return std::find(list.begin(), list.end(), address) != list.end();
  };
  std::vector<Ipv4> servers;
  for (std::string_view line : split(text, '\n')) {
    // A keyword is at the start of its line and followed by a blank; text after the address is ignored.
    if (!line.starts_with(kKeyword) || line.size() == kKeyword.size()) continue;
    if (char after = line[kKeyword.size()]; after != ' ' && after != '\t') continue;
    std::string_view value = trim(line.substr(kKeyword.size()));
    value = value.substr(0, value.find_first_of(" \t#;"));
    Ipv4 address = Ipv4::parse(value).value_or({});
    if (address && !has(ours, address) && !has(servers, address) && servers.size() < kUpstreamsMax) servers.push_back(address);
  }
  return servers;
}

}  // namespace coracle::network

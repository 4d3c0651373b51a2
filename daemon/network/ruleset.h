// SPDX-License-Identifier: Apache-2.0
// Ruleset: one nftables table as a value. What the table should hold is planned as such a value (proxy.h); here it becomes
// the text of one transaction: either the whole table anew, or only what differs from what was applied last, so that a
// changed endpoint costs a few elements and keeps what the kernel has learnt (session affinity).
// Source: nft(8).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace coracle::network {

inline constexpr const char* kTableName = "coracle";

struct Chain {
  std::string hook;  // "type nat hook prerouting priority -100; policy accept;", "" for one that is jumped to
  std::vector<std::string> rules;
  bool operator==(const Chain&) const = default;
};

struct Set {
  bool map = false;
  std::string declaration;                      // "type inet_proto . inet_service : verdict;"
  std::map<std::string, std::string> elements;  // key → value; the value is "" where it is no map
  bool operator==(const Set&) const = default;
};

// Whether packets put elements into the set; the table's owner puts none.
bool is_dynamic(const Set& set);
// An element of a dynamic set of IPv4 addresses, to be forgotten after a time; "" when the key is no address.
std::string expiring_element_text(std::string_view key, uint64_t expires_ms);

struct Ruleset {
  std::string table = std::string("ip ") + kTableName;  // its family and name
  std::map<std::string, Set> sets;
  std::map<std::string, Chain> chains;
  bool operator==(const Ruleset&) const = default;
};

// Makes the table what `rules` says, whatever it was. For reading, too.
std::string replace_script(const Ruleset& rules);
// Makes `after` out of `before`, which is of the same table; "" when they are equal. A set that changes its declaration must
// change its name.
std::string change_script(const Ruleset& before, const Ruleset& after);
// Removes the table; succeeds when there is none.
std::string remove_script(const std::string& table = Ruleset().table);

}  // namespace coracle::network

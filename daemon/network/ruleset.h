// SPDX-License-Identifier: Apache-2.0
// Ruleset: one nftables table as a value. The desired table is planned as such a value (proxy.h). This file converts it to the
// script of one transaction: either the whole table, or the difference to the rules applied last. So a changed endpoint changes a
// few elements, and the kernel keeps its dynamic state (session affinity). Source: nft(8).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace coracle::network {

inline constexpr const char* kTableName = "coracle";

struct Chain {
  std::string hook;  // "type nat hook prerouting priority -100; policy accept;", "" for a chain that is jumped to
  std::vector<std::string> rules;
  bool operator==(const Chain&) const = default;
};

struct Set {
  bool map = false;
  std::string declaration;                      // "type inet_proto . inet_service : verdict;"
  std::map<std::string, std::string> elements;  // key → value; the value is "" in a set that is not a map
  bool operator==(const Set&) const = default;
};

// Whether packets add elements to the set; then the Ruleset contains none.
bool is_dynamic(const Set& set);
// An element of a dynamic set of IPv4 addresses that expires after the given time; "" if the key is not an address.
std::string expiring_element_text(std::string_view key, uint64_t expires_ms);

struct Ruleset {
  std::string table = std::string("ip ") + kTableName;  // address family and name
  std::map<std::string, Set> sets;
  std::map<std::string, Chain> chains;
  bool operator==(const Ruleset&) const = default;
};

// A script that replaces the table by `rules`, whatever it contains. Also for display.
std::string replace_script(const Ruleset& rules);
// A script that changes the table from `before` to `after`; "" if they are equal. Both must be of the same table. A set with a
// new declaration must have a new name.
std::string change_script(const Ruleset& before, const Ruleset& after);
// Parts of a table: the sets and chains in them are complete but for elements that both parts have.
// Drops what two parts have in common, so that only the difference remains.
void drop_common(Ruleset& before, Ruleset& after);
// Whether `whole` has all of the part `before` and nothing that `after` adds to it.
bool is_replaceable(const Ruleset& whole, const Ruleset& before, const Ruleset& after);
// Replaces one part by another; is_replaceable() must hold. change_script(before, after) does the same in the kernel.
void replace_part(Ruleset& whole, const Ruleset& before, const Ruleset& after);
// A script that removes the table; it succeeds if there is none.
std::string remove_script(const std::string& table = Ruleset().table);

}  // namespace coracle::network

// SPDX-License-Identifier: Apache-2.0
// Syntaxes other than names: addresses, networks, path segments, percentages. Problems are in Kubernetes' wording.
// Source: apimachinery util/validation, api/validation/path; RFC 4291, RFC 4632. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/json.h"
#include "store/schema/validate/findings.h"

namespace coracle::schema {

constexpr std::string_view kNotAnIp = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
constexpr std::string_view kNotANetwork = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";

struct Network {
  std::string address;  // 4 or 16 bytes, with the bits after the prefix set to 0
  int prefix = 0;
  bool four() const { return address.size() == 4; }
  bool contains(const Network& other) const;  // of the same family and completely within this one
  std::string text() const;                   // canonical
};
std::optional<Network> parse_network(std::string_view text);

// `canonical`: the address must be in canonical form; otherwise legacy forms are accepted.
std::vector<std::string> ip_problems(std::string_view text, bool canonical);
std::vector<std::string> network_problems(std::string_view text, bool canonical);

// For an address that others must be able to reach: not loopback, link-local or unspecified. Adds nothing if it is not an
// address.
void check_not_special(Findings& out, const std::string& path, std::string_view ip);
bool is_multicast(std::string_view ip);

std::vector<std::string> path_segment_problems(std::string_view text);
std::vector<std::string> wildcard_subdomain_problems(std::string_view text);  // *.example.com
std::vector<std::string> percent_problems(std::string_view text);             // 25%
std::vector<std::string> header_name_problems(std::string_view text);
void check_domain_path(Findings& out, const std::string& path, std::string_view text);  // example.com/name

// A number of pods or a percentage of them. It must not be negative; a string must be a percentage.
void check_amount(Findings& out, const std::string& path, const json::value* amount);
void check_at_most_all(Findings& out, const std::string& path, const json::value* amount);  // a percentage up to 100
int64_t amount_of(const json::value* amount);  // the number, or the number before the %; 0 if invalid

}  // namespace coracle::schema

// SPDX-License-Identifier: Apache-2.0
// What a registry's challenge asks for, and whom it may send us to for a token. Pure.
// Source: RFC 9110 section 11.6.1; distribution/distribution docs "Token Authentication Specification".
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/image/reference.h"
#include "runtime/runtime.h"

namespace coracle::image {

struct Challenge {
  std::string scheme;                         // lower case: "basic", "bearer"
  std::map<std::string, std::string> params;  // realm, service, scope, …; names in lower case
};

// One WWW-Authenticate value, which may hold several challenges. What cannot be read is left out.
std::vector<Challenge> parse_challenges(std::string_view header);

// Where the challenge came from.
struct ChallengedBy {
  std::string origin;     // as origin_of
  bool verified = true;   // its certificate counts; of https
  bool is_local = false;  // as Http::Exchange::is_local
};
// Whether it may send us to `realm` for a token. One that speaks https has a realm that does; only what is at this machine or on
// its link may send us there; and a password goes unencrypted to no other host than the registry's own. Errors: forbidden;
// invalid, no address.
Result<void> check_realm(const std::string& realm, const ChallengedBy& by, bool with_credentials);

}  // namespace coracle::image

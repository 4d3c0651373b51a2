// SPDX-License-Identifier: Apache-2.0
// A registry's authentication challenges, and the check of the token server that it names. Pure.
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

// Parses a WWW-Authenticate value, which may contain several challenges. Malformed ones are skipped.
std::vector<Challenge> parse_challenges(std::string_view header);

// The server that sent the challenge.
struct ChallengedBy {
  std::string origin;     // as origin_of
  bool verified = true;   // for https: its certificate was verified
  bool is_local = false;  // as Http::Exchange::is_local
};
// Checks the token server `realm` of a challenge. A registry with https must have a realm with https. Only a local registry may
// name a realm on this machine or its link. Credentials may only be sent unencrypted to the registry's own host. Errors:
// forbidden; invalid if `realm` is not a URL.
Result<void> check_realm(const std::string& realm, const ChallengedBy& by, bool with_credentials);

}  // namespace coracle::image

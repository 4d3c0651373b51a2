// SPDX-License-Identifier: Apache-2.0
// Who we are to a registry: which credentials are meant for it, and what its challenge asks for. Pure.
// Source: RFC 9110 section 11.6.1; distribution/distribution docs "Token Authentication Specification"; docker's
// config.json and Kubernetes' imagePullSecrets for how registries are named.
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

// Those meant for `host` (a registry or mirror, host[:port]) and the repository; the longest path prefix first.
std::vector<runtime::Credentials> matching_credentials(const std::vector<runtime::Credentials>& all, std::string_view host,
                                                       std::string_view repository);

}  // namespace coracle::image

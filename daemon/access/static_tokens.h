// SPDX-License-Identifier: Apache-2.0
// Static tokens: a file of lines token,user,uid[,"group1,group2"], read at start. Pure but for the reading.
// Source: Kubernetes "Authenticating", static token file; authentication/token/tokenfile (format).
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "daemon/admission/user.h"
#include "runtime/base/result.h"

namespace coracle::access {

using StaticTokens = std::map<std::string, User>;

// Errors: invalid, naming the line.
Result<StaticTokens> parse_static_tokens(std::string_view text);
// Errors: what the disk said; invalid, naming file and line.
Result<StaticTokens> read_static_tokens(const std::string& path);

}  // namespace coracle::access

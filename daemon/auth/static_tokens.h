// SPDX-License-Identifier: Apache-2.0
// Static tokens: a file with lines token,user,uid[,"group1,group2"], read at start. Pure except the reading. Source: Kubernetes
// "Authenticating", static token file; authentication/token/tokenfile (format).
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "store/object/user.h"
#include "runtime/base/result.h"

namespace coracle::auth {

using StaticTokens = std::map<std::string, User>;

// Errors: invalid, with the line number.
Result<StaticTokens> parse_static_tokens(std::string_view text);
// Errors: file errors; invalid, with file and line.
Result<StaticTokens> read_static_tokens(const std::string& path);

}  // namespace coracle::auth

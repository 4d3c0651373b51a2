// SPDX-License-Identifier: Apache-2.0
// Parses JSON that a test contains.
#pragma once

#include <string_view>

#include "runtime/base/json.h"

namespace coracle {

inline json::value parsed(std::string_view text) { return MUST(parse_json(text)); }

}  // namespace coracle

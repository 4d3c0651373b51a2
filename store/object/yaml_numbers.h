// SPDX-License-Identifier: Apache-2.0
// YAML with its numbers as they are written. Separate from yaml.h, because only callers that identify a text by its content need
// it: the identity must stay the same when the reading of numbers changes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace coracle {

// As parse_yaml(), but 1.0 and 1e3 are floats, not the integers 1 and 1000. store_whole_numbers_as_integers() makes what
// parse_yaml() returns. Errors: parse_yaml()'s.
Result<std::vector<json::value>> parse_yaml_with_floats(std::string_view text, std::vector<std::string>* duplicates = nullptr);

}  // namespace coracle

// SPDX-License-Identifier: Apache-2.0
// JSON as Go's encoding/json writes it, and kubectl with it: < > & and line separators are escaped, numbers have no needless
// exponent, members are sorted where Go has a map. Pure. Source: Go's encoding/json package.
#pragma once

#include <string>
#include <vector>

#include "ctl/go_value.h"
#include "runtime/base/json.h"

namespace coracle::ctl {

enum class JsonOrder : uint8_t { given, sorted };

std::string go_json(const json::value& value, JsonOrder order = JsonOrder::sorted);  // one line
// In lines, each level indented by four spaces; no line break at the end.
std::string go_pretty_json(const json::value& value, JsonOrder order = JsonOrder::sorted);
std::string go_json(const GoValue& value);  // members sorted
std::string go_pretty_json(const std::vector<GoValue>& list);
std::string go_json_number(const json::value& number);

}  // namespace coracle::ctl

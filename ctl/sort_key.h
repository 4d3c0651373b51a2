// SPDX-License-Identifier: Apache-2.0
// The order of `get --sort-by`: by the first value that the path selects. Absent values come first, then false and true, then
// numbers and quantities (100Mi before 1Gi, "999" before "1000"), then times, then other strings in natural order (web-2 before
// web-10). Pure. Source: kubectl get's sorter.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace coracle::ctl {

// Compares digit sequences as numbers and the rest as bytes. A strict total order: "1" is before "01".
bool natural_less(std::string_view a, std::string_view b);

// True if `a` sorts before `b`. A null pointer is an absent value.
bool sorts_before(const json::value* a, const json::value* b);

// Sorts `values` by the value at `path` in each, or, if `under` is not "", in the member `under` of each. The sort is stable.
// Errors: invalid for a malformed path or one that selects nothing in any of the values.
Result<void> sort_by(json::array& values, std::string_view under, const std::string& path);

}  // namespace coracle::ctl

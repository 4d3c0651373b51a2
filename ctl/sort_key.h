// SPDX-License-Identifier: Apache-2.0
// The order of `get --sort-by`: objects by the first value that a path leads to. Absent values come first, then false and true,
// then amounts (numbers, and texts that are quantities: 100Mi before 1Gi, "999" before "1000"), then times, then other texts in
// natural order (web-2 before web-10). Pure. Source: kubectl get's sorter.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace coracle::ctl {

// Runs of digits count as numbers, the rest byte by byte. A strict order of all texts: "1" is before "01".
bool natural_less(std::string_view a, std::string_view b);

// Whether the value is before the other; null pointers are absent values.
bool sorts_before(const json::value* a, const json::value* b);

// Sorts `values` by what stands at `path` of each, or of what stands at `under` in each; equal ones keep their order. Errors:
// invalid for a path that cannot be read, or that leads to nothing in any of them.
Result<void> sort_by(json::array& values, std::string_view under, const std::string& path);

}  // namespace coracle::ctl

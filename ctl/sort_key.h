// SPDX-License-Identifier: Apache-2.0
// The order of `get --sort-by`: by the first value that the path selects. Absent values come first, then false and true, then
// numbers and quantities (100Mi before 1Gi, "999" before "1000"), then other strings by their bytes (web-10 before web-2). Pure.
// Source: kubectl get's sorter.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "ctl/jsonpath.h"
#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace coracle::ctl {

// True if `a` sorts before `b`. A null pointer is an absent value.
bool sorts_before(const json::value* a, const json::value* b);

class SortPath {
 public:
  // Errors: bad_request, or invalid, for a path that cannot be read; in kubectl's words, which differ for a table.
  static Result<SortPath> parse(const std::string& expression, bool of_table);

  // Sorts `values` by the value at the path in each, or, if `under` is not "", in the member `under` of each. The sort is stable.
  // Errors: invalid for a path that selects nothing in any of the values, or that fails for one.
  Result<void> sort(json::array& values, std::string_view under) const;

 private:
  explicit SortPath(JsonPath path) : path_(std::move(path)) {}
  JsonPath path_;
};

// Both. A table's values have their object `under` a member.
Result<void> sort_by(json::array& values, std::string_view under, const std::string& path);

}  // namespace coracle::ctl

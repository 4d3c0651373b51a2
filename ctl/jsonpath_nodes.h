// SPDX-License-Identifier: Apache-2.0
// A parsed JSONPath template. See jsonpath.h.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/result.h"

namespace coracle::ctl {

inline Error path_error(std::string text) { return Error(Code::invalid, std::move(text)); }

// As Go adds: it wraps around.
inline int64_t wrapping_sum(int64_t a, int64_t b) { return int64_t(uint64_t(a) + uint64_t(b)); }

struct JsonPathNode {
  enum class Kind : uint8_t { list, text, identifier, field, array, filter, union_, wildcard, recursive, integer, real, boolean };
  struct Bound {
    int64_t value = 0;
    bool known = false, derived = false;  // derived: from the index before it, [1] being [1:2]
  };

  Kind kind = Kind::list;
  std::string text;  // of text, identifiers, fields; the operator of a filter, "exists" where there is none
  int64_t integer = 0;
  double real = 0;
  bool flag = false;
  std::array<Bound, 3> bounds;         // of an array: from, to, step
  std::vector<JsonPathNode> children;  // of lists and unions; both sides of a filter
};

// A list of what stands in the template: text nodes, and a list for each pair of braces. Errors: invalid, in kubectl's words.
Result<JsonPathNode> parse_jsonpath(std::string_view text, int nesting = 0);

}  // namespace coracle::ctl

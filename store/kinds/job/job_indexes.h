// SPDX-License-Identifier: Apache-2.0
// Indexes of jobs as text: "1,3-5,7". Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace coracle::schema {

struct Indexes {
  std::vector<std::pair<int64_t, int64_t>> intervals;  // first and last, in ascending order
  int64_t count = 0;
  std::string problem;  // the invalid part, in Kubernetes' wording; "" if everything is valid
};

// Indexes below `completions`, in ascending order.
Indexes parse_indexes(std::string_view text, int64_t completions);

}  // namespace coracle::schema

// SPDX-License-Identifier: Apache-2.0
// Changes in the command line's syntax, for the tests of edit and set.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ctl/edit.h"

namespace coracle::ctl {

inline std::vector<Change> changes_of(const std::vector<std::string>& args) {
  std::vector<std::string> objects = {"pod/x"};
  std::vector<Change> changes;
  EXPECT_TRUE(split_pairs(args, "label", objects, changes));
  return changes;
}

}  // namespace coracle::ctl

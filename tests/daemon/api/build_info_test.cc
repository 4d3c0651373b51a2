// SPDX-License-Identifier: Apache-2.0
// The build information that is derived from git's output.
#include "daemon/api/build_info.h"

#include <gtest/gtest.h>

namespace coracle::api {
namespace {

TEST(BuildInfo, is_what_git_says) {
  const std::string commit(40, 'a');
  BuildInfo clean = read_build_info(commit, "1700000000"), dirty = read_build_info(commit + "-dirty", "1700000000"),
            none = read_build_info("", "0");
  EXPECT_EQ(clean.commit, commit);
  EXPECT_EQ(clean.tree_state, "clean");
  EXPECT_EQ(clean.date, "2023-11-14T22:13:20Z");
  EXPECT_EQ(dirty.commit, commit);
  EXPECT_EQ(dirty.tree_state, "dirty");
  EXPECT_EQ(none.commit, "");
  EXPECT_EQ(none.tree_state, "archive");
  EXPECT_EQ(none.date, "1970-01-01T00:00:00Z");
}

}  // namespace
}  // namespace coracle::api

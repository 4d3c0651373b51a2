// SPDX-License-Identifier: Apache-2.0
// The order of get --sort-by.
#include "ctl/sort_key.h"

#include <gtest/gtest.h>

#include "tests/daemon/parsed.h"

namespace coracle::ctl {
namespace {

TEST(SortKey, each_of_the_list_is_before_all_that_follow) {
  const json::value ordered = parsed(
      R"([null,false,true,-3,"100m",1,2.5,"999","1000","100Mi","1Gi",1e300,"2026-01-02T03:04:05Z","2026-01-02T04:04:05Z","apple","web-10","web-2"])");
  const json::array& all = ordered.get_array();
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_FALSE(sorts_before(&all[i], &all[i])) << to_text(all[i]);
    for (size_t k = i + 1; k < all.size(); ++k) {
      EXPECT_TRUE(sorts_before(&all[i], &all[k])) << to_text(all[i]) << " " << to_text(all[k]);
      EXPECT_FALSE(sorts_before(&all[k], &all[i])) << to_text(all[i]) << " " << to_text(all[k]);
    }
  }
  EXPECT_TRUE(sorts_before(nullptr, &all[1]));
  EXPECT_FALSE(sorts_before(nullptr, nullptr));
}

TEST(SortKey, sorts_by_a_path_and_keeps_equals_in_order) {
  json::value list = parsed(R"([{"n":"a","s":{"m":"1Gi"}},{"n":"b","s":{"m":"100Mi"}},{"n":"c"},{"n":"d","s":{"m":"1024Mi"}}])");
  auto names = [&] {
    std::string all;
    for (const auto& one : list.get_array()) all += get_string(one, "n");
    return all;
  };
  for (const char* path : {".s.m", "s.m", "{.s.m}", "{s.m}"}) {
    ASSERT_TRUE(sort_by(list.get_array(), "", path)) << path;
    EXPECT_EQ(names(), "cbad") << path;
  }
  json::value rows = parsed(R"([{"object":{"r":"1000"}},{"object":{"r":"999"}}])");
  ASSERT_TRUE(sort_by(rows.get_array(), "object", ".r"));
  EXPECT_EQ(to_text(rows), R"([{"object":{"r":"999"}},{"object":{"r":"1000"}}])");
}

TEST(SortKey, a_path_to_nothing_is_an_error) {
  json::value list = parsed(R"([{"n":"a"}])");
  for (const char* path : {".no.such", "no.such", "{.no.such}"}) {
    auto sorted = sort_by(list.get_array(), "", path);
    ASSERT_FALSE(sorted) << path;
    EXPECT_EQ(sorted.error().text(), R"(couldn't find any field with path "{.no.such}" in the list of objects)");
  }
  json::array none;
  EXPECT_TRUE(sort_by(none, "", ".no.such"));
}

TEST(SortKey, a_path_that_cannot_be_read_is_an_error_for_nothing_too) {
  json::array none;
  EXPECT_EQ(sort_by(none, "object", "{.a").error().text(), "sorting error: unclosed action");
  EXPECT_EQ(sort_by(none, "object", ".a[").error().text(), "sorting error: unterminated array");
  EXPECT_EQ(sort_by(none, "", ".a[").error().text(), "unterminated array");
  EXPECT_EQ(sort_by(none, "", "{.a").error().text(),
            "unexpected path string, expected a 'name1.name2' or '.name1.name2' or '{name1.name2}' or '{.name1.name2}'");
}

}  // namespace
}  // namespace coracle::ctl

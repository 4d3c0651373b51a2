// SPDX-License-Identifier: Apache-2.0
// The lines of fields.
#include "store/object/yaml_lines.h"

#include <gtest/gtest.h>

namespace coracle {
namespace {

TEST(YamlLines, finds_the_name_of_a_field_or_an_item) {
  const std::string text =
      "# a comment\n"         // 1
      "port: 1\n"             // 2
      "mirrors:\n"            // 3
      "  port:\n"             // 4
      "    endpoint:\n"       // 5
      "    - https://a\n"     // 6
      "    - |\n"             // 7
      "      port: 2\n"       // 8
      "    - {x: {y: 1},\n"   // 9
      "       z: 2}\n"        // 10
      "  \"*\": &all\n"       // 11
      "    endpoint: [b,\n"   // 12
      "      c]\n"            // 13
      "  'quo''ted': *all\n"  // 14
      "port2: 3\n";           // 15
  struct Row {
    std::vector<std::string> path;
    size_t want;
  };
  for (const Row& row : {
           Row{{}, 0},
           Row{{"absent"}, 0},
           Row{{"port"}, 2},
           Row{{"mirrors"}, 3},
           Row{{"mirrors", "port"}, 4},
           Row{{"mirrors", "port", "endpoint", "0"}, 6},
           Row{{"mirrors", "port", "endpoint", "1"}, 7},
           Row{{"mirrors", "port", "endpoint", "2", "z"}, 10},
           Row{{"mirrors", "port", "endpoint", "2", "x", "y"}, 9},
           Row{{"mirrors", "port", "endpoint", "9"}, 5},
           Row{{"mirrors", "*", "endpoint", "1"}, 13},
           Row{{"mirrors", "quo'ted", "endpoint"}, 14},
           Row{{"port2"}, 15},
       })
    EXPECT_EQ(line_in_yaml(text, row.path), row.want) << (row.path.empty() ? "" : row.path.back());
  EXPECT_EQ(line_in_yaml("---\n---\na: 1\n", {"a"}), 3u) << "an empty document is none";
  EXPECT_EQ(line_in_yaml("a: 1\n---\nb: 1\n", {"b"}), 0u) << "a later document is another text";
  EXPECT_EQ(line_in_yaml("a: {c: 1}\n---\na: {b: 1}\n", {"a", "b"}), 1u);
  EXPECT_EQ(line_in_yaml("x\n---\nb: 1\n", {"b"}), 0u);
  EXPECT_EQ(line_in_yaml("\xef\xbb\xbf"
                         "a: 1\n",
                         {"a"}),
            1u);
  EXPECT_EQ(line_in_yaml("", {"a"}), 0u);
  EXPECT_EQ(line_in_yaml("a: [\n", {"a", "0"}), 1u) << "no YAML, and no crash";
  EXPECT_EQ(line_in_yaml("a: [\n", {"b"}), 0u) << "nor does it look for ever";
}

}  // namespace
}  // namespace coracle

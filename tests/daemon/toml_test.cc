// SPDX-License-Identifier: Apache-2.0
// TOML.
#include "daemon/toml.h"

#include <gtest/gtest.h>

namespace coracle {
namespace {

TEST(Toml, has_tables_strings_numbers_and_arrays) {
  auto toml = parse_toml(
      "\xef\xbb\xbf# a comment\r\n"
      "server = \"https://x\"  # another\r\n"
      "plain = 'C:\\no\\escapes'\n"
      "escaped = \"a\\\"b\\\\\\u00e9\ttab\"\n"
      "number = +1_000\nbelow = -3\nyes = true\nno=false\n"
      "list = [\n  'a', # one\n  'b',\n]\nnested = [['a', 'b'], []]\ninside = {a = 1, b.c = 'd'}\nnothing = {}\n"
      "dotted.'quoted key'.x = 1\ndotted.y = 2\n"
      "\n[host.\"https://m:5000\"]\nz = 1\na = 2\n[host.\"https://m:5000\".header]\nk = 'v'\n[host]\n[host.second]");
  ASSERT_TRUE(toml.ok()) << toml.error().text();
  EXPECT_EQ(
      to_text(toml->root),
      R"({"server":"https://x","plain":"C:\\no\\escapes","escaped":"a\"b\\é\ttab","number":1000,"below":-3,"yes":true,"no":false,)"
      R"("list":["a","b"],"nested":[["a","b"],[]],"inside":{"a":1,"b":{"c":"d"}},"nothing":{},)"
      R"("dotted":{"quoted key":{"x":1},"y":2},)"
      R"("host":{"https://m:5000":{"z":1,"a":2,"header":{"k":"v"}},"second":{}}})");
  EXPECT_EQ(toml->line_of({"server"}), 2u);
  EXPECT_EQ(toml->line_of({"list"}), 9u);
  EXPECT_EQ(toml->line_of({"nested"}), 13u) << "what stands in several lines is counted";
  EXPECT_EQ(toml->line_of({"host", "https://m:5000", "a"}), 21u);
  EXPECT_EQ(toml->line_of({"host", "https://m:5000", "header", "absent"}), 22u) << "of what is above";
  EXPECT_EQ(toml->line_of({"absent"}), 0u);
  for (const char* text : {"", "\n", "# nothing", " \t\r\n"}) {
    auto empty = parse_toml(text);
    ASSERT_TRUE(empty.ok()) << text;
    EXPECT_TRUE(empty->root.get_object().empty());
  }
}

TEST(Toml, names_the_line_of_a_mistake) {
  struct Row {
    const char *text, *want;
  };
  const std::string deep = "a = " + std::string(100, '[');
  for (const Row& row : {
           Row{"a = 1\nb = 2 c = 3\n", "line 2: more follows"},
           Row{"a = 1\na = 2\n", "line 2: a is there twice"},
           Row{"[t]\n[t]\n", "line 2: [t] is there twice"},
           Row{"a = 1\n[a]\n", "line 2: a is there already"},
           Row{"a = {b = 1}\na.c = 2\n", "line 2: a is there already"},
           Row{"a\n", "line 1: '=' is missing"},
           Row{"= 1\n", "line 1: a name is missing"},
           Row{"[a\n", "line 1: ']' is missing"},
           Row{"[[a]]\n", "line 1: arrays of tables"},
           Row{"a = \n", "line 1: a value is missing"},
           Row{"a = 1.5\n", "line 1: the value is no text in quotes"},
           Row{"a = 1979-05-27\n", "line 1: the value is no text in quotes"},
           Row{"a = yes\n", "line 1: the value is no text in quotes"},
           Row{"a = \"open\nb = 1\n", "line 1: a quote is missing"},
           Row{"a = \"open\\", "line 1: a quote is missing"},
           Row{"a = \"\\x\"\n", "line 1: no text"},
           Row{"a = '''x'''\n", "line 1: strings of several lines"},
           Row{"a = [1\nb = 2\n", "line 2: ',' or ']' is missing"},
           Row{"a = [1,\n", "line 2: a value is missing"},
           Row{"a = {b = 1", "line 1: ',' or '}' is missing"},
           Row{deep.c_str(), "line 1: more than"},
       }) {
    auto toml = parse_toml(row.text);
    ASSERT_FALSE(toml.ok()) << row.text;
    EXPECT_EQ(toml.error().code(), Code::invalid) << row.text;
    EXPECT_TRUE(toml.error().text().starts_with(row.want)) << row.text << ": " << toml.error().text();
  }
}

}  // namespace
}  // namespace coracle

// SPDX-License-Identifier: Apache-2.0
// The form of YAML. What is wanted was printed by kubectl 1.36: `kubectl create --dry-run=client -o yaml` of an object with the
// value, and `kubectl kustomize`, print the same.
#include "store/object/yaml_emitter.h"

#include <gtest/gtest.h>

#include "store/object/yaml.h"

namespace coracle {
namespace {

// As the value of one field.
std::string field(std::string_view text) { return to_yaml(json::object{{"k", text}}); }

TEST(YamlEmitter, quotes_texts_that_are_not_texts_for_every_reader) {
  for (const char* text : {"",
                           "~",
                           "null",
                           "Null",
                           "NULL",
                           "true",
                           "True",
                           "TRUE",
                           "false",
                           "y",
                           "Y",
                           "yes",
                           "Yes",
                           "YES",
                           "n",
                           "N",
                           "no",
                           "No",
                           "NO",
                           "on",
                           "On",
                           "ON",
                           "off",
                           "Off",
                           "OFF",
                           "1",
                           "-1",
                           "+1",
                           "0",
                           "007",
                           "08",
                           "0755",
                           "0o17",
                           "0x1F",
                           "0b101",
                           "1_000",
                           "-0x1f",
                           "1.5",
                           ".5",
                           "5.",
                           "-.5",
                           "1e3",
                           "1E3",
                           "1e-3",
                           "12345e6",
                           "2026",
                           "1e-999",
                           "0_",
                           "1.",
                           "1.e5",
                           "1.5e+3",
                           ".inf",
                           "-.inf",
                           "+.Inf",
                           ".nan",
                           ".NaN",
                           "12:30",
                           "12:30:45",
                           "1:2:3.5",
                           "-190:20:30",
                           "00:11:22:33:44:55",
                           "2026-11-21",
                           "2026-1-2",
                           "2026-11-21T08:08:30Z",
                           "2026-11-21t08:08:30.25Z",
                           "2026-11-21T08:08:30+01:00",
                           "2026-11-21 08:08:30",
                           "18446744073709551616",
                           "99999999999999999999999"})
    EXPECT_EQ(field(text), "k: \"" + std::string(text) + "\"\n");
}

TEST(YamlEmitter, leaves_other_texts_plain) {
  for (const char* text : {"a",
                           "yEs",
                           "nO",
                           "nil",
                           "none",
                           "1.2.3",
                           "10.0.0.1",
                           "100m",
                           "1Gi",
                           "1e999",
                           "._5",
                           "+-5",
                           "0xffffffffffffffffffff",
                           "0x",
                           "0xfg",
                           "0b2",
                           "1__a",
                           "_1",
                           "1:60:1",
                           "::1",
                           "1h30m",
                           "-a",
                           "--flag",
                           "+a",
                           ".a",
                           ".",
                           "..",
                           "2026-13-01",
                           "2026-02-30",
                           "2026-11-21-late",
                           "2026-11-21T08:08",
                           "a b",
                           "a:b",
                           "a#b",
                           "a,b",
                           "http://a/b?c=d",
                           "a=b",
                           "=",
                           "<<",
                           "a'b",
                           "a\"b",
                           "(a)",
                           "$a",
                           "/a",
                           "<a>",
                           "a\\b",
                           "ü",
                           "0.0.0.0/0",
                           ".e1"}) {
    EXPECT_EQ(field(text), "k: " + std::string(text) + "\n");
  }
}

TEST(YamlEmitter, quotes_what_has_a_meaning_in_yaml) {
  for (const char* text : {"-",  "- a", "?",  "? a", ": a", "a: b", "a:", "a #b", "#a", "12:",   "[a]", "{a}", "*a",  "&a",
                           "!a", "%a",  "@a", "`a",  "|",   ">",    ",a", "]",    "}",  "\"a\"", " a",  "a ",  "---", "..."}) {
    EXPECT_EQ(field(text), "k: '" + std::string(text) + "'\n");
  }
  EXPECT_EQ(field("'a'"), "k: '''a'''\n");
  EXPECT_EQ(field("it's: x"), "k: 'it''s: x'\n");
}

TEST(YamlEmitter, escapes_what_is_not_printed) {
  struct Row {
    const char *text, *want;
  };
  for (const Row& row : {Row{"a\tb", R"("a\tb")"}, Row{"\t", R"("\t")"}, Row{"a\rb", R"("a\rb")"}, Row{"\x1b[1m", R"("\e[1m")"},
                         Row{"\x7f", R"("\x7F")"}, Row{"\xc2\x85", R"("\N")"}, Row{"\xef\xbb\xbf", R"("\uFEFF")"},
                         Row{"\xf0\x9f\x98\x80", R"("\U0001F600")"}, Row{"a\tb\n\"c\\", R"("a\tb\n\"c\\")"}})
    EXPECT_EQ(field(row.text), "k: " + std::string(row.want) + "\n");
}

TEST(YamlEmitter, prints_several_lines_as_a_block) {
  struct Row {
    const char *text, *want;
  };
  for (const Row& row : {
           Row{"a\nb\n", "k: |\n  a\n  b\n"},
           Row{"a\nb", "k: |-\n  a\n  b\n"},
           Row{"a\nb\n\n", "k: |+\n  a\n  b\n\n"},
           Row{"a\n\nb\n", "k: |\n  a\n\n  b\n"},
           Row{"\n", "k: |2+\n\n"},
           Row{"\na\n", "k: |2\n\n  a\n"},
           Row{"  a\nb\n", "k: |2\n    a\n  b\n"},
           Row{"a \nb\n", "k: \"a \\nb\\n\"\n"},
           Row{"a\nb ", "k: \"a\\nb \"\n"},
           Row{"yes\n", "k: |\n  yes\n"},
           Row{"a\r\nb\n", "k: \"a\\r\\nb\\n\"\n"},
           Row{"# a\nb: c\n", "k: |\n  # a\n  b: c\n"},
       })
    EXPECT_EQ(field(row.text), row.want);
}

TEST(YamlEmitter, breaks_long_lines_at_a_space_after_80_characters) {
  std::string word(38, 'a');
  EXPECT_EQ(field(word + " " + word + " b c"), "k: " + word + " " + word + " b\n  c\n");
  EXPECT_EQ(field(word + "a " + word + " b c"), "k: " + word + "a " + word + "\n  b c\n");
  EXPECT_EQ(field(word + " " + word + " b  c d"), "k: " + word + " " + word + " b  c\n  d\n");  // two spaces are not broken
  EXPECT_EQ(field(std::string(200, 'a')), "k: " + std::string(200, 'a') + "\n");
  EXPECT_EQ(field(word + ": " + word + " b c"), "k: '" + word + ": " + word + "\n  b c'\n");
  EXPECT_EQ(field(word + "\t" + word + "  b"), "k: \"" + word + "\\t" + word + "\n  \\ b\"\n");
}

TEST(YamlEmitter, prints_numbers_as_go) {
  struct Row {
    const char *json, *want;
  };
  for (const Row& row : {Row{"0", "0"}, Row{"-7", "-7"}, Row{"18446744073709551615", "18446744073709551615"}, Row{"1.0", "1"},
                         Row{"1.5", "1.5"}, Row{"0.1", "0.1"}, Row{"0.00001", "1e-05"}, Row{"0.0001", "0.0001"},
                         Row{"123456.5", "123456.5"}, Row{"1234567.5", "1.2345675e+06"}, Row{"1e6", "1000000"},
                         Row{"1e19", "10000000000000000000"}, Row{"1e20", "1e+20"}, Row{"1e100", "1e+100"}, Row{"-0.0", "0"}})
    EXPECT_EQ(to_yaml(*parse_json(row.json)), std::string(row.want) + "\n") << row.json;
}

TEST(YamlEmitter, sorts_keys_with_their_numbers_and_letters_last) {
  EXPECT_EQ(
      to_yaml(*parse_json(
          R"({"b":1,"a10":1,"a9":1,"a09":1,"a":1,"B":1,"_c":1,"a-b":1,"ab":1,"a.b":1,"1":1,"10":1,"2":1,"ä":1,"yes":1,"":1})")),
      "\"\": 1\n_c: 1\n\"1\": 1\n\"2\": 1\n\"10\": 1\nB: 1\na: 1\na-b: 1\na.b: 1\na9: 1\na09: 1\na10: 1\nab: 1\nb: 1\n"
      "\"yes\": 1\nä: 1\n");
}

TEST(YamlEmitter, nests_lists_and_maps) {
  EXPECT_EQ(to_yaml(*parse_json(R"({"a":[{"b":[1,[2,3],[],{}]},"x\ny"],"e":{},"f":[],"g":{"h":{"i":null}},"t":true})")),
            "a:\n- b:\n  - 1\n  - - 2\n    - 3\n  - []\n  - {}\n- |-\n  x\n  y\ne: {}\nf: []\ng:\n  h:\n    i: null\nt: true\n");
  EXPECT_EQ(to_yaml(nullptr), "null\n");
  EXPECT_EQ(to_yaml(json::array{1}), "- 1\n");
  EXPECT_EQ(to_yaml("a\n\n"), "|+\n  a\n\n");
}

TEST(YamlEmitter, keys_that_are_long_or_look_like_something_else) {
  std::string key(129, 'k');
  EXPECT_EQ(to_yaml(json::object{{key, 1}}), "? " + key + "\n: 1\n");
  EXPECT_EQ(to_yaml(json::object{{"<<", 1}}), "\"<<\": 1\n");
  EXPECT_EQ(to_yaml(json::object{{"a\nb", 1}}), "? |-\n  a\n  b\n: 1\n");
}

TEST(YamlEmitter, replaces_bytes_that_are_no_utf_8) { EXPECT_EQ(field("a\xff"), "k: a\xef\xbf\xbd\n"); }

}  // namespace
}  // namespace coracle

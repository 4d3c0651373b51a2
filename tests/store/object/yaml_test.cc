// SPDX-License-Identifier: Apache-2.0
// YAML as Kubernetes reads it and kubectl writes it.
#include "store/object/yaml.h"

#include <gtest/gtest.h>

#include "store/object/yaml_numbers.h"

namespace coracle {
namespace {

std::string read(std::string_view text) {
  auto parsed = parse_yaml(text);
  if (!parsed) return "error: " + parsed.error().text();
  std::string out;
  for (const auto& document : *parsed) out += to_text(document) + "\n";
  return out;
}

TEST(Yaml, reads_scalars_as_kubernetes_does) {
  struct Row {
    const char* text;
    const char* want;
  };
  for (const Row& row : {
           Row{"a: 1", R"({"a":1})"},
           Row{"a: -7", R"({"a":-7})"},
           Row{"a: 0x10", R"({"a":16})"},
           Row{"a: 0644", R"({"a":420})"},
           Row{"a: 0o17", R"({"a":15})"},
           Row{"a: 1_000", R"({"a":1000})"},
           Row{"a: 1.5", R"({"a":1.5E0})"},
           Row{"a: 1e3", R"({"a":1000})"},
           Row{"a: 1000.0", R"({"a":1000})"},
           Row{"a: -2.5e1", R"({"a":-25})"},
           Row{"a: [1., 1e18, -0.0]", R"({"a":[1,1000000000000000000,0]})"},
           Row{"a: 1e19", R"({"a":1E19})"},
           Row{"a: '1e3'", R"({"a":"1e3"})"},
           Row{"a: yes", R"({"a":true})"},
           Row{"a: off", R"({"a":false})"},
           Row{"a: 'yes'", R"({"a":"yes"})"},
           Row{"a: ~", R"({"a":null})"},
           Row{"a:", R"({"a":null})"},
           Row{"a: \"\"", R"({"a":""})"},
           Row{"a: !!str 1", R"({"a":"1"})"},
           Row{"a: 1.2.3", R"({"a":"1.2.3"})"},
           Row{"a: +-5", R"({"a":"+-5"})"},
           Row{"a: 100m", R"({"a":"100m"})"},
           Row{"a: 2024-01-01", R"({"a":"2024-01-01"})"},
           Row{"a: 18446744073709551615", R"({"a":18446744073709551615})"},
           Row{"a: \"\\u00fc\"", "{\"a\":\"\xc3\xbc\"}"},
           Row{"{\"json\": [1, {\"x\": null}]}", R"({"json":[1,{"x":null}]})"},
           Row{"a: |\n  x\n  y\n", R"({"a":"x\ny\n"})"},
           Row{"a: >-\n  x\n  y\n", R"({"a":"x y"})"},
           Row{"1: x\ntrue: z", R"({"1":"x","true":"z"})"},
       })
    EXPECT_EQ(read(row.text), std::string(row.want) + "\n") << row.text;
}

TEST(Yaml, keeps_floats_where_a_text_is_identified_by_what_it_holds) {
  std::vector<std::string> duplicates;
  auto parsed = MUST(parse_yaml_with_floats("a: [1., 1e9, -0.0, 1, 1.5, '1.0', 1_0.0]\nb: 1\nb: {1.0: 2.0}\n", &duplicates));
  ASSERT_EQ(parsed.size(), 1u);
  EXPECT_EQ(to_text(parsed[0]), R"({"a":[1E0,1E9,-0E0,1,1.5E0,"1.0",1E1],"b":{"1.0":2E0}})");
  EXPECT_EQ(duplicates, std::vector<std::string>{"b"});
  EXPECT_EQ(duplicate_keys_by_line("a: 1\nb:\n- c: 1\n  d: 2\n  c: 3\na: 2\n"),
            (std::vector<std::string>{"line 5: key \"c\" already set in map", "line 6: key \"a\" already set in map"}));
  EXPECT_EQ(duplicate_keys_by_line("a: ["), std::vector<std::string>());
}

TEST(Yaml, reads_documents_aliases_and_merge_keys) {
  EXPECT_EQ(read("a: 1\n---\n---\nb: 2\n"), "{\"a\":1}\n{\"b\":2}\n");
  EXPECT_EQ(read("x: &x {p: 1, q: 2}\ny: {<<: *x, q: 3}\nz: *x"),
            "{\"x\":{\"p\":1,\"q\":2},\"y\":{\"q\":3,\"p\":1},\"z\":{\"p\":1,\"q\":2}}\n");
  std::vector<size_t> lines;
  ASSERT_TRUE(parse_yaml("a: 1\n---\n# note\nb: 2\n", &lines));
  EXPECT_EQ(lines, (std::vector<size_t>{1, 4}));
}

TEST(Yaml, names_the_line_of_what_it_cannot_read) {
  struct Row {
    const char* text;
    const char* want;
  };
  for (const Row& row :
       {Row{"a: 1\nb:\n\t- x", "line 3"}, Row{"a: 1\na: 2", "line 2: key \"a\" already set in map"},
        Row{"a: *x", "unknown alias *x"}, Row{"a: [1", "line"}, Row{"? [a]\n: b", "a key must be text"},
        Row{"a: .inf", "JSON cannot hold"}, Row{"a: b: c", "line 1"}, Row{"<<: 3", "map merge"}, Row{"\xff\xfe\xff", "line"}})
    EXPECT_NE(read(row.text).find(row.want), std::string::npos) << row.text << " gave " << read(row.text);
}

TEST(Yaml, refuses_bombs) {
  std::string bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n";
  for (int i = 1; i < 12; ++i) {
    std::string p = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + p;
    for (int j = 0; j < 9; ++j) bomb += "," + p;
    bomb += "]\n";
  }
  auto parsed = parse_yaml(bomb);
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().code(), Code::too_large);
  EXPECT_FALSE(parse_yaml(std::string(5000, '[')));
}

TEST(Yaml, bounds_the_directives_of_a_document) {
  auto directives = [](int count, const std::string& end = "\n") {
    std::string text;
    for (int i = 0; i < count; ++i) text += "%TAG !a" + std::to_string(i) + "! tag:example.com," + std::to_string(i) + ":" + end;
    return text + "---\na: b\n";
  };
  EXPECT_TRUE(parse_yaml(directives(100)));
  EXPECT_EQ(parse_yaml(directives(101)).error().code(), Code::too_large);
  for (const char* end : {"\n", "\r", "\xc2\x85", "\xe2\x80\xa8"})
    EXPECT_EQ(parse_yaml(directives(100'000, end)).error().code(), Code::too_large);
}

TEST(Yaml, bounds_what_anchors_and_aliases_copy) {
  std::string repeated = "a: &a \"" + std::string(1 << 20, 'x') + "\"\nb:\n";
  for (int i = 0; i < 20; ++i) repeated += "- *a\n";  // 20 nodes, 20 MiB
  EXPECT_EQ(parse_yaml(repeated).error().code(), Code::too_large);
  std::string nested;  // each anchor contains all earlier ones
  for (int i = 0; i < 90; ++i) nested += "&a" + std::to_string(i) + " [";
  nested += "x";
  for (int i = 0; i < 20'000; ++i) nested += ",x";
  EXPECT_EQ(parse_yaml(nested + std::string(90, ']')).error().code(), Code::too_large);
  std::string usual = "base: &base {";
  for (int i = 0; i < 10'000; ++i) usual += "k" + std::to_string(i) + ": v, ";
  EXPECT_TRUE(parse_yaml(usual + "}\none: {<<: *base}\ntwo: {<<: *base}\n"));
}

TEST(Yaml, skips_a_byte_order_mark) {
  auto parsed = parse_yaml(
      "\xef\xbb\xbf"
      "a: 1\n");
  ASSERT_TRUE(parsed) << parsed.error().text();
  EXPECT_EQ(to_text(parsed->front()), R"({"a":1})");
}

TEST(Yaml, the_last_of_two_keys_counts_where_they_are_told) {
  std::vector<std::string> twice;
  auto parsed = parse_yaml("spec:\n  a: 1\n  l:\n  - {b: 1}\n  - {b: 1, b: 2}\n  a: 3\nmore: 1\n", nullptr, &twice);
  ASSERT_TRUE(parsed) << parsed.error().text();
  EXPECT_EQ(to_text(parsed->front()), R"({"spec":{"a":3,"l":[{"b":1},{"b":2}]},"more":1})");
  EXPECT_EQ(twice, (std::vector<std::string>{"spec.l[1].b", "spec.a"}));
  std::string many = "a: 1\n";
  for (int i = 0; i < 1000; ++i) many += "a: 1\n";
  twice.clear();
  EXPECT_TRUE(parse_yaml(many, nullptr, &twice));
  EXPECT_EQ(twice.size(), kDuplicateKeysMax);
}

TEST(Yaml, aliases_cannot_nest_deeper_than_text_may) {
  std::string open(60, '['), shut(60, ']');
  EXPECT_TRUE(parse_yaml("a: &a " + open + "1" + shut + "\nb: [*a]"));
  EXPECT_EQ(parse_yaml("a: &a " + open + "1" + shut + "\nb: " + open + "*a" + shut).error().code(), Code::too_large);
}

TEST(Yaml, writes_what_kubectl_writes) {
  json::value value = *parse_json(
      R"({"b":[{"name":"x","v":"1"},{"name":"z"}],"a":"yes","e":{},"f":[],"m":"one\ntwo\n","o":null,"s":"with: colon","t":true,"q":"","h":"#x","p":"100m","d":1.5})");
  EXPECT_EQ(to_yaml(value),
            "a: \"yes\"\nb:\n- name: x\n  v: \"1\"\n- name: z\nd: 1.5\ne: {}\nf: []\nh: '#x'\nm: |\n  one\n  two\no: null\np: "
            "100m\nq: \"\"\ns: 'with: colon'\nt: true\n");
}

TEST(Yaml, quotes_what_others_would_read_as_a_time) {
  struct Row {
    const char *text, *want;
  };
  for (const Row& row : {Row{"2026-11-21T08:08:30Z", "\"2026-11-21T08:08:30Z\"\n"}, Row{"2026-11-21", "\"2026-11-21\"\n"},
                         Row{"12:30:45", "\"12:30:45\"\n"}, Row{"2026-11-21-late", "2026-11-21-late\n"}, Row{"1h30m", "1h30m\n"},
                         Row{"10.0.0.1", "10.0.0.1\n"}, Row{"-", "'-'\n"}})
    EXPECT_EQ(to_yaml(row.text), row.want);
}

TEST(Yaml, what_is_written_reads_back) {
  for (
      const char* text :
      {R"({"a":["1","true","null","~","0x1","1e3","-","- x","? y",": z","a: b","a #b","'q'","\"d\"","  lead","trail  ","\n","a\n\nb","tab\there","[x]","{y}","*a","&b","!c","%d","@e","`f"]})",
       R"({"k":{"":"empty key","1":"x","y":"n"}})"}) {
    json::value value = *parse_json(text);
    auto back = parse_yaml(to_yaml(value));
    ASSERT_TRUE(back) << back.error().text() << "\n" << to_yaml(value);
    EXPECT_EQ(back->front(), value) << to_yaml(value);
  }
}

}  // namespace
}  // namespace coracle

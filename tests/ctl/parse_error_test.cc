// SPDX-License-Identifier: Apache-2.0
// Mistakes in JSON, as Go tells them.
#include "ctl/parse_error.h"

#include <gtest/gtest.h>

#include "store/object/yaml.h"

namespace coracle::ctl {
namespace {

// The wants are kubectl's for `create -f`, after "error parsing FILE: ".
TEST(ParseError, tells_a_mistake_in_json_as_go_does) {
  struct Row {
    std::string text, want;
  };
  for (const Row& row : std::vector<Row>{
           {"{\"a\" 1}", "json: offset 6: invalid character '1' after object key"},
           {"{\"a\":[1 2}", "json: offset 9: invalid character '2' after array element"},
           {"{\"a\":[1}", "json: offset 8: invalid character '}' after array element"},
           {"{a:[}", "json: offset 2: invalid character 'a' looking for beginning of object key string"},
           {"{\"a\":[1,]:}", "json: offset 9: invalid character ']' looking for beginning of value"},
           {"{\"a\":tru]}", "json: offset 9: invalid character ']' in literal true (expecting 'e')"},
           {"{\"a\":nul", "unexpected EOF"},
           {"{\"a\":\"\\x\"]}", "json: offset 8: invalid escape sequence `\\x` in string"},
           {"{\"a\":\"\\u12g\"]}", "json: offset 12: invalid escape sequence `\\u12g\"` in string"},
           {"{\"a\":\"b\n\\\"]", "json: offset 8: invalid character '\\n' in string"},
           {"{\"a\":-]}", "json: offset 7: invalid character ']' in numeric literal"},
           {"{\"a\":1.]}", "json: offset 8: invalid character ']' in numeric literal"},
           {"{\"a\":1e]}", "json: offset 8: invalid character ']' in numeric literal"},
           {"{\"a\":01]}", "json: offset 7: invalid character '1' after object key:value pair"},
           {"{\"a\":'b]}", "json: offset 6: invalid character '\\'' looking for beginning of value"},
           {"{\"a\":ä]}", "json: offset 7: invalid character 'ä' looking for beginning of value"},
           {"{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\"}}",
            "json: offset 39: invalid character '}' looking for beginning of value"},
           {"{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"x\"}}\n{\"apiVersion\":\"v1\",\"kind\":"
            "\"ConfigMap\",\"metadata\":{\"name\":\"y\"}}\n{\"a\" ]}",
            "invalid character ']' after object key"},
           {"{\"a\":[1,[2,{\"b\":3]]}", "json: offset 18: invalid character ']' after object key:value pair"},
           {"{", "unexpected EOF"},
           {"{,]}", "json: offset 2: invalid character ',' looking for beginning of object key string"},
           {"{\"a\":1,]", "json: offset 8: invalid character ']' looking for beginning of object key string"},
           {"{\"a\":.5]}", "json: offset 6: invalid character '.' looking for beginning of value"},
           {"{\"a\":falze]}", "json: offset 9: invalid character 'z' in literal false (expecting 's')"},
       })
    EXPECT_EQ(json_mistake(row.text).value_or("none"), row.want) << row.text;
}

TEST(ParseError, finds_none_in_json_of_any_depth) {
  for (const char* text : {"{}", " [ ] ", R"({"a":[1,-0.5e+3,true,false,null,"\\u00e4\\n"],"b":{"c":{}}} {} [])", ""})
    EXPECT_EQ(json_mistake(text), std::nullopt) << text;
  const std::string deep(100'000, '[');
  EXPECT_EQ(json_mistake(deep), "unexpected EOF");
  EXPECT_EQ(json_mistake(deep + std::string(deep.size(), ']')), std::nullopt);
}

TEST(ParseError, what_does_not_begin_as_json_is_yaml) {
  auto told = [](const std::string& text) {
    auto parsed = parse_yaml(text);
    return parsed ? "" : parse_error(parsed.take_error(), "f", text).text();
  };
  EXPECT_EQ(told(" {\"a\" 1}"), "error parsing f: json: offset 7: invalid character '1' after object key");
  EXPECT_TRUE(told("a: [").starts_with("error parsing f: error converting YAML to JSON: yaml: line ")) << told("a: [");
  EXPECT_EQ(parse_error(Error(Code::invalid, "too large"), "f", "{").text(), "f: too large");
}

}  // namespace
}  // namespace coracle::ctl

// SPDX-License-Identifier: Apache-2.0
// Go templates and Go's formatting, compared with kubectl.
#include "ctl/go_template.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ctl/go_format.h"
#include "ctl/go_json.h"
#include "ctl/go_text.h"
#include "tests/ctl/go_template_cases.h"
#include "tests/daemon/parsed.h"

namespace coracle::ctl {
namespace {

struct Executed {
  std::string out, error;
};

Executed execute(const std::string& text, const json::value& data, bool missing_key_is_error = false,
                 const TemplateLimits& limits = {}) {
  Executed result;
  auto parsed = GoTemplate::parse(text);
  if (!parsed) return {"", parsed.error().text()};
  auto ran = parsed->execute(data, missing_key_is_error, result.out, limits);
  if (!ran) result.error = ran.error().text();
  return result;
}

TEST(GoTemplate, prints_what_kubectl_prints) {
  json::value object = parsed(kPrintedObject);
  for (const auto& row : kTemplateCases) {
    Executed got = execute(row.text, object, row.missing_key_is_error);
    EXPECT_EQ(got.out, row.out) << row.text;
    EXPECT_EQ(got.error, row.error) << row.text;
  }
}

TEST(GoTemplate, names_line_and_column_of_a_mistake) {
  json::value object = parsed(R"({"a":1})");
  EXPECT_EQ(execute("x\n{{if .a}}\n  {{.a.b}}{{end}}", object).error,
            "template: output:3:6: executing \"output\" at <.a.b>: can't evaluate field b in type interface {}");
  EXPECT_EQ(execute("x\n\n{{if .a", object).error, "template: output:3: unclosed action");
  EXPECT_EQ(execute("{{if .a}}\n\n{{\"x}}", object).error, "template: output:3: unterminated quoted string");
  EXPECT_EQ(execute("{{.a\n\n}", object).error, "template: output:3: unexpected \"}\" in operand");
  EXPECT_EQ(execute("{{.a\n\n\"x}}", object).error,
            "template: output:3: unterminated quoted string in action started at output:1");
  EXPECT_EQ(execute("{{.a\n\n", object).error, "template: output:3: unclosed action started at output:1");
  EXPECT_EQ(execute("{{define \"t\"}}\n{{.b.c}}{{end}}{{template \"t\" .}}", parsed(R"({"b":1})")).error,
            "template: output:2:4: executing \"t\" at <.b.c>: can't evaluate field c in type interface {}");
}

TEST(GoTemplate, trims_space_at_markers_only) {
  json::value none;
  EXPECT_EQ(execute("a \n\t{{- 1}} b", none).out, "a1 b");
  EXPECT_EQ(execute("a {{1 -}} \r\n b", none).out, "a 1b");
  EXPECT_EQ(execute("a {{-1}} b", none).out, "a -1 b");
  EXPECT_EQ(execute("a {{- -1 -}} b", none).out, "a-1b");
  EXPECT_EQ(execute("{{- 1 -}}\n", none).out, "1");
  EXPECT_EQ(execute("{{\n1\n}}", none).out, "1");
}

TEST(GoTemplate, is_bounded) {
  json::value object = parsed(R"({"a":[1,2,3]})");
  EXPECT_EQ(execute(R"({{define "r"}}{{template "r"}}{{end}}{{template "r"}})", object).error,
            "template: output:1:25: executing \"r\" at <{{template \"r\"}}>: exceeded maximum template depth (300)");
  std::string deep, controls;
  for (int i = 0; i < 100'000; ++i) deep += "(", controls += "{{if 1}}";
  EXPECT_EQ(execute("{{" + deep, object).error, "template: output:1: max expression depth exceeded");
  EXPECT_EQ(execute(controls, object).error, "template: output:1: max expression depth exceeded");
  EXPECT_NE(execute(std::string(kTemplateBytesMax + 1, 'x'), object).error.find("longer than"), std::string::npos);

  TemplateLimits limits{.bytes_max = 1000, .steps_max = 10'000};
  Executed much = execute("{{range 1000000}}0123456789{{end}}", object, false, limits);
  EXPECT_NE(much.error.find("the output is longer than 1000 bytes"), std::string::npos) << much.error;
  EXPECT_LE(much.out.size(), 1010u);
  EXPECT_NE(execute("{{range 1000000000}}{{end}}", object, false, limits).error.find("more than 10000 steps"), std::string::npos);
  EXPECT_NE(execute("{{$x := \"ab\"}}{{range 100}}{{$x = print $x $x}}{{end}}", object, false, limits)
                .error.find("the text is longer than 1000 bytes"),
            std::string::npos);
  EXPECT_NE(execute("{{printf \"%1000000d\" 1}}", object, false, limits).error.find("longer than"), std::string::npos);
}

TEST(GoTemplate, runs_templates_that_call_themselves) {
  json::value object = parsed(R"({"n":"a","c":[{"n":"b","c":[{"n":"d"}]},{"n":"e"}]})");
  EXPECT_EQ(
      execute(R"({{define "tree"}}{{.n}}{{with .c}}({{range .}}{{template "tree" .}}{{end}}){{end}}{{end}}{{template "tree" .}})",
              object)
          .out,
      "a(b(d)e)");
  EXPECT_EQ(execute(R"({{define "t"}}{{$x := 5}}{{.}}{{end}}{{$x := 1}}{{template "t" 2}}{{$x}})", object).out, "21")
      << "variables stay in their template";
  EXPECT_EQ(execute(R"({{define "output"}}defined{{end}})", object).out, "defined");
}

TEST(GoFormat, numbers) {
  struct Row {
    double value;
    char format;
    int precision;
    const char* want;
  };
  for (const Row& row :
       {Row{0, 'g', -1, "0"}, Row{-0.0, 'g', -1, "-0"}, Row{100000, 'g', -1, "100000"}, Row{1e6, 'g', -1, "1e+06"},
        Row{123456789.5, 'g', -1, "1.234567895e+08"}, Row{1e-4, 'g', -1, "0.0001"}, Row{1e-5, 'g', -1, "1e-05"},
        Row{1e6, 'g', 10, "1000000"}, Row{0.1, 'f', -1, "0.1"}, Row{1e21, 'f', -1, "1000000000000000000000"},
        Row{2.5, 'f', 0, "2"}, Row{1.5, 'e', 3, "1.500e+00"}, Row{1, 'b', -1, "4503599627370496p-52"},
        Row{1.5, 'x', -1, "0x1.8p+00"}, Row{1.96875, 'x', 1, "0x1.0p+01"}, Row{0, 'x', -1, "0x0p+00"},
        Row{INFINITY, 'g', -1, "+Inf"}, Row{5e-324, 'g', -1, "5e-324"}, Row{5e-324, 'b', -1, "1p-1074"}})
    EXPECT_EQ(go_float(row.value, row.format, row.precision), row.want);
}

TEST(GoText, reads_and_quotes_runes) {
  EXPECT_EQ(go_quoted("a\"\\\n\t\x01\x7f\xffé\xe2\x80\x8b\xf0\x9f\x98\x80"), "\"a\\\"\\\\\\n\\t\\x01\\x7f\\xffé\\u200b😀\"");
  EXPECT_EQ(go_quoted("é😀", '"', true), "\"\\u00e9\\U0001f600\"");
  for (const char* broken : {"\xc0\x80", "\xed\xa0\x80", "\xf5\x80\x80\x80", "\xe2\x80", "\x80"}) {
    EXPECT_TRUE(first_rune(broken).broken()) << broken;
  }
  EXPECT_EQ(count_runes("aé日"), 3u);
  EXPECT_EQ(first_runes("aé日", 2), "aé");
  EXPECT_EQ(shown_rune('*'), "U+002A '*'");
  EXPECT_EQ(shown_rune('\t'), "U+0009");
  EXPECT_EQ(*go_unquoted(R"("\u00e9\U0001F600\x41\101\a")"), "é😀AA\a");
  for (const char* wrong : {R"("\ud800")", R"("\x4")", R"("\400")", R"("\')", R"("a"b")", R"(")", "'a'"})
    EXPECT_FALSE(go_unquoted(wrong)) << wrong;
}

TEST(GoJson, is_written_as_go_writes_it) {
  json::value object = parsed(R"({"b":"<&>\u2028\u0001\b\"","a":[1,2.5,1e21,1e-7,18446744073709551615,1e2,{}],"c":[]})");
  EXPECT_EQ(go_json(object),
            R"({"a":[1,2.5,1e+21,1e-7,18446744073709552000,100,{}],"b":"\u003c\u0026\u003e\u2028\u0001\b\"","c":[]})");
  EXPECT_EQ(go_pretty_json(parsed(R"({"b":[1],"a":{}})"), JsonOrder::given),
            "{\n    \"b\": [\n        1\n    ],\n    \"a\": {}\n}");
}

}  // namespace
}  // namespace coracle::ctl

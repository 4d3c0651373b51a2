// SPDX-License-Identifier: Apache-2.0
// The output of objects and tables on a terminal.
#include "ctl/print.h"

#include <gtest/gtest.h>

#include "tests/daemon/parsed.h"

namespace coracle::ctl {
namespace {

const char* kTable =
    R"({"kind":"Table","columnDefinitions":[{"name":"Name","format":"name","priority":0},{"name":"Ready","priority":0},{"name":"IP","priority":1}],
  "rows":[{"cells":["web-0","1/1","10.0.0.1"],"object":{"metadata":{"name":"web-0","namespace":"default","labels":{"app":"web","x.io/tier":"front"}}}},
          {"cells":["a-much-longer-name","0/1",null],"object":{"metadata":{"name":"a","namespace":"kube-system"}}}]})";

TEST(PrintTable, aligns_columns_and_leaves_nothing_behind_the_last) {
  EXPECT_EQ(print_table(parsed(kTable), {}),
            "NAME                 READY\n"
            "web-0                1/1\n"
            "a-much-longer-name   0/1\n");
}

TEST(PrintTable, shows_more_when_asked) {
  TableOptions options;
  options.wide = true;
  EXPECT_EQ(print_table(parsed(kTable), options),
            "NAME                 READY   IP\n"
            "web-0                1/1     10.0.0.1\n"
            "a-much-longer-name   0/1     <none>\n");
  options = {};
  options.headers = false, options.namespace_column = true;
  EXPECT_EQ(print_table(parsed(kTable), options),
            "default       web-0                1/1\n"
            "kube-system   a-much-longer-name   0/1\n");
  options = {};
  options.show_labels = true, options.label_columns = {"x.io/tier"}, options.name_prefix = "pod/";
  EXPECT_EQ(print_table(parsed(kTable), options),
            "NAME                     READY   TIER    LABELS\n"
            "pod/web-0                1/1     front   app=web,x.io/tier=front\n"
            "pod/a-much-longer-name   0/1             <none>\n");
}

TEST(PrintTable, an_empty_table_is_its_headers) {
  EXPECT_EQ(print_table(parsed(R"({"columnDefinitions":[{"name":"Name"}],"rows":[]})"), {}), "NAME\n");
  EXPECT_EQ(print_table(parsed("{}"), {}), "\n");
}

TEST(Columns, count_characters_not_bytes_and_keep_to_one_line) {
  Columns columns;
  columns.add({"äöü", "b"});
  columns.add({"a", "two"});
  EXPECT_EQ(columns.text(), "äöü   b\na     two\n");
  EXPECT_EQ(
      print_table(parsed(R"({"columnDefinitions":[{"name":"M"},{"name":"N"}],"rows":[{"cells":["first\nsecond",7]}]})"), {}),
      "M          N\nfirst...   7\n");
}

TEST(Columns, write_out_what_a_terminal_obeys) {
  EXPECT_EQ(
      print_table(
          parsed(R"({"columnDefinitions":[{"name":"M"},{"name":"N"}],"rows":[{"cells":["\u001b[31mred\rover","a\tb\u202e"]}]})"),
          {}),
      "M              N\n^[[31mred...   a\\tb\\u202e\n");
  EXPECT_EQ(align_tabs("a\t\x1b[2J\r\nbb\tc\n"), "a   ^[[2J\\r\nbb  c\n");
}

TEST(Columns, fit_the_terminal_by_shortening_the_widest_but_names) {
  Columns columns;
  columns.add({"NAME", "MESSAGE", "AGE"});
  columns.add({"a-name-of-some-length", "a message that is far too long for any small terminal", "5m"});
  EXPECT_EQ(columns.text(60),
            "NAME                    MESSAGE                          AGE\n"
            "a-name-of-some-length   a message that is far too lon…   5m\n");
  EXPECT_EQ(columns.text(200), columns.text());
  std::string narrow = columns.text(10);  // not less than kShortest
  EXPECT_NE(narrow.find("a message that is f…"), std::string::npos) << narrow;
  EXPECT_NE(narrow.find("a-name-of-some-length"), std::string::npos) << narrow;
  Columns wide;
  wide.add({"n", "ääääääääääääääääääääääääääääää"});
  EXPECT_EQ(wide.text(26), "n     äääääääääääääääääää…\n");
}

TEST(Columns, later_rows_keep_the_widths_of_earlier_ones) {
  std::vector<size_t> widths;
  Columns first, second, third;
  first.add({"NAME", "READY"}), first.add({"long-name", "1/1"});
  EXPECT_EQ(first.text(0, &widths), "NAME        READY\nlong-name   1/1\n");
  second.add({"x", "0/1"});
  EXPECT_EQ(second.text(0, &widths), "x           0/1\n");
  third.add({"an-even-longer-name", "0/1"});
  EXPECT_EQ(third.text(0, &widths), "an-even-longer-name   0/1\n");
}

TEST(PrintName, is_kind_and_name) {
  EXPECT_EQ(print_name(parsed(R"({"metadata":{"name":"web"}})"), "deployment.apps"), "deployment.apps/web");
}

}  // namespace
}  // namespace coracle::ctl

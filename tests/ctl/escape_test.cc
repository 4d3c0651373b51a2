// SPDX-License-Identifier: Apache-2.0
// Control sequences for a terminal are escaped, and nothing else is changed.
#include "ctl/escape.h"

#include <gtest/gtest.h>

namespace coracle::ctl {
namespace {

TEST(Escape, writes_out_what_a_terminal_obeys) {
  struct Row {
    std::string_view text, line, lines;
  };
  for (const Row& row : {
           Row{"plain text, \xc3\xa4\xe2\x82\xac\xf0\x9f\x90\x9f", "plain text, \xc3\xa4\xe2\x82\xac\xf0\x9f\x90\x9f",
               "plain text, \xc3\xa4\xe2\x82\xac\xf0\x9f\x90\x9f"},
           Row{"\x1b[31mred\x1b]0;title\x07", "^[[31mred^[]0;title^G", "^[[31mred^[]0;title^G"},
           Row{"a\rb", "a\\rb", "a\\rb"},
           Row{"a\nb\tc", "a\\nb\\tc", "a\nb\tc"},
           Row{std::string_view("\0\x08\x7f", 3), "^@^H^?", "^@^H^?"},
           Row{"\xc2\x9b"
               "2J\xc2\x85",
               "\\u009b2J\\u0085", "\\u009b2J\\u0085"},
           Row{"\xe2\x80\xae\x67\x6e\xe2\x81\xa6\xd8\x9c\xe2\x80\x8f", "\\u202egn\\u2066\\u061c\\u200f",
               "\\u202egn\\u2066\\u061c\\u200f"},
           Row{"\x9b"
               "2J\xff",
               "\\x9b2J\\xff", "\\x9b2J\\xff"},          // eight-bit controls, which are invalid UTF-8
           Row{"\xe2\x82", "\\xe2\\x82", "\\xe2\\x82"},  // truncated
           Row{"\xc0\x9b\xed\xa0\x80", "\\xc0\\x9b\\xed\\xa0\\x80", "\\xc0\\x9b\\xed\\xa0\\x80"},  // overlong, half of a
                                                                                                   // surrogate pair
           Row{"", "", ""},
       }) {
    EXPECT_EQ(visible_line(row.text), row.line);
    EXPECT_EQ(visible_lines(row.text), row.lines);
    EXPECT_EQ(visible_line(visible_line(row.text)), row.line) << "twice is once";
  }
}

}  // namespace
}  // namespace coracle::ctl

// SPDX-License-Identifier: Apache-2.0
// Regular expressions of selectors.
#include "ctl/kustomize/regex.h"

#include <gtest/gtest.h>

namespace coracle::kustomize {
namespace {

TEST(Regex, finds) {
  struct Row {
    const char *pattern, *text;
    bool want;
  };
  for (const Row& row : {
           Row{"", "x", true},
           {"b", "abc", true},
           {"^b", "abc", false},
           {"c$", "abc", true},
           {"a|bc|d", "xbcx", true},
           {"^(?:a|bc|d)$", "bcd", false},
           {"^w.b$", "web", true},
           {"^w.b$", "w\nb", false},
           {"^(ab)*$", "", true},
           {"^(ab)*$", "ababab", true},
           {"^(ab)+c?$", "ababc", true},
           {"^(ab)+c?$", "", false},
           {"^a{2,3}$", "a", false},
           {"^a{2,3}$", "aaa", true},
           {"^a{2,3}$", "aaaa", false},
           {"^a{2}$", "aa", true},
           {"^a{2,}$", "aaaaa", true},
           {"^a{,2}$", "a{,2}", true},
           {"^a{0}b$", "b", true},
           {"^[a-c_-]+$", "a_-c", true},
           {"^[^a-c]$", "b", false},
           {"^[]a]+$", "]a", true},
           {"^[\\d.]+$", "1.2", true},
           {"^\\w+\\s\\D$", "ab1 x", true},
           {"^\\.$", "a", false},
           {"^(?i)web$", "WeB", true},
           {"^(?i:w)eb$", "WEB", false},
           {"^(a|b)*?c$", "abac", true},
           {"^((a*)*)*$", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", false},
           {"x?(b|c)d", "ccd", true},
           {"^nginx(:[a-zA-Z0-9_.{}-]*)?$", "nginx:1.2-{x}", true},
       }) {
    auto regex = Regex::compile(row.pattern);
    ASSERT_TRUE(regex) << row.pattern << ": " << regex.error().text();
    EXPECT_EQ(regex->finds(row.text), row.want) << row.pattern << " in " << row.text;
  }
}

TEST(Regex, names_what_is_wrong) {
  struct Row {
    const char *pattern, *want;
  };
  for (const Row& row : {Row{"a(b", "missing )"},
                         {"a)b", "unexpected )"},
                         {"*a", "nothing to repeat"},
                         {"[a", "missing ]"},
                         {"[b-a]", "bad range"},
                         {"a{3,2}", "bad repetition"},
                         {"a\\", "it ends with a backslash"},
                         {"\\p", "unsupported escape \\p"},
                         {"(?=a)", "unsupported group"},
                         {"((((a{1000}){1000}){1000}))", "too many repetitions"}}) {
    auto regex = Regex::compile(row.pattern);
    ASSERT_FALSE(regex) << row.pattern;
    EXPECT_NE(regex.error().text().find(row.want), std::string::npos) << regex.error().text();
  }
  EXPECT_FALSE(Regex::compile(std::string(kRegexBytesMax + 1, 'a')));
  EXPECT_FALSE(Regex::compile(std::string(100, '(') + std::string(100, ')')));
  EXPECT_FALSE(Regex::compile_anchored("a)|(b"));
  EXPECT_FALSE(Regex::compile_anchored("a|b")->finds("ab"));
}

}  // namespace
}  // namespace coracle::kustomize

// SPDX-License-Identifier: Apache-2.0
// Names of repositories on mirrors.
#include "runtime/image/rewrite.h"

#include <gtest/gtest.h>

namespace coracle::image {
namespace {

TEST(Rewrite, changes_a_name_by_the_first_that_fits) {
  struct Row {
    const char* name;
    std::vector<runtime::RegistryRewrite> rewrites;
    const char* want;
  };
  for (const Row& row : {
           Row{"rancher/rke2", {}, "rancher/rke2"},
           Row{"rancher/rke2", {{"^rancher/(.*)", "mirror/rancher-images/$1"}}, "mirror/rancher-images/rke2"},
           Row{"library/nginx", {{"^rancher/(.*)", "x/$1"}, {"^library/", "hub/"}}, "hub/nginx"},
           Row{"library/nginx", {{"^library/nginx$", "first"}, {"^first$", "second"}}, "first"},
           Row{"a/b", {{"(.*)/(.*)", "${2}-$1$$"}}, "b-a$"},
           Row{"a/a/a", {{"a", "bb"}}, "bb/bb/bb"},
           Row{"a/a", {{"^a", "b"}}, "b/a"},
           Row{"ab", {{"x*", "-"}}, "-a-b-"},
           Row{"a", {{"a", ""}}, "a"},
           Row{"a", {{"(", "b"}, {"a", "c"}}, "c"},
           Row{"a", {{"a", "$3x$"}}, "x$"},
       })
    EXPECT_EQ(rewrite_repository(row.name, row.rewrites), row.want)
        << row.name << (row.rewrites.empty() ? "" : row.rewrites[0].pattern);
}

TEST(Rewrite, says_why_a_pattern_is_none) {
  EXPECT_TRUE(check_rewrite({"^a(b|c)+$", "$1"}).ok());
  auto bad = check_rewrite({"a(b", ""});
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().code(), Code::invalid);
  EXPECT_FALSE(bad.error().text().empty());
  for (const char* good : {R"(a\.b)", R"(\w+/\W)", R"(a\\d)", R"(a\/b)", "[a-z0-9]+/x?", "[]a]?b", "[^]]+", "[[:alpha:]]+",
                           R"([a\.])", R"([a-z.\-]+)", R"(a\-b)", "(a)?b*c+"})
    EXPECT_TRUE(check_rewrite({good, ""}).ok()) << good;
  for (const auto& [in_go, what] :
       {std::pair(R"(^v\d+/)", R"("\\d")"), std::pair(R"(\pL)", R"("\\p")"), std::pair(R"(\Qa\E)", R"("\\Q")"),
        std::pair(R"(a\\\d)", R"("\\d")"), std::pair(R"((a)\1)", R"("\\1")"), std::pair("(?:a)", R"("(?")"),
        std::pair("(?i)a", R"("(?")"), std::pair("(.*?)/a", R"("*?")"), std::pair("a{2}?", R"("}?")"),
        std::pair(R"([\w.-]+)", R"("\\w")"), std::pair(R"([\]a])", R"("\\]")"), std::pair(R"(^([a-z0-9\-.]+)/)", R"("\\-")"),
        std::pair(R"([\-a])", R"("\\-")")}) {
    auto told = check_rewrite({in_go, ""});
    ASSERT_FALSE(told.ok()) << in_go << " would be taken for something else";
    EXPECT_EQ(told.error().text(), std::string(what) + " is not known in a POSIX extended regular expression") << in_go;
  }
}

TEST(Rewrite, is_of_the_registry_or_of_all) {
  const std::map<std::string, std::vector<runtime::RegistryRewrite>> all = {{"docker.io", {{"a", "b"}}}, {"*", {{"a", "c"}}}};
  EXPECT_EQ(rewrite_repository("a", rewrites_of(all, "docker.io")), "b");
  EXPECT_EQ(rewrite_repository("a", rewrites_of(all, "ghcr.io")), "c");
  EXPECT_EQ(rewrite_repository("a", rewrites_of({}, "ghcr.io")), "a");
}

}  // namespace
}  // namespace coracle::image

// SPDX-License-Identifier: Apache-2.0
// A user and a time, as other programs read them.
#include "daemon/auth/user_info.h"

#include <gtest/gtest.h>

#include "daemon/auth/asn1_time.h"

namespace coracle::auth {
namespace {

TEST(UserInfo, says_what_there_is) {
  User user{"u", "1", {"a", "b"}, {{"scopes", {"x", "y"}}, {"none", {}}}};
  EXPECT_EQ(to_text(user_info(user)), R"({"username":"u","uid":"1","groups":["a","b"],"extra":{"none":[],"scopes":["x","y"]}})");
}

TEST(UserInfo, leaves_out_what_is_empty) {
  EXPECT_EQ(to_text(user_info({})), "{}");
  EXPECT_EQ(to_text(user_info({"u", "", {}, {}})), R"({"username":"u"})");
  EXPECT_EQ(to_text(user_info({"", "", {"a"}, {}})), R"({"groups":["a"]})");
}

TEST(Asn1Time, has_its_year_in_full) {
  EXPECT_EQ(asn1_time(WallTime{}), "19700101000000Z");
  EXPECT_EQ(asn1_time(MUST(parse_time("2049-12-31T23:59:59Z"))), "20491231235959Z");
  EXPECT_EQ(asn1_time(MUST(parse_time("2199-12-31T23:59:59Z"))), "21991231235959Z");
}

}  // namespace
}  // namespace coracle::auth

// SPDX-License-Identifier: Apache-2.0
// Users and groups from an image's own files.
#include "runtime/image/users.h"

#include <gtest/gtest.h>

namespace coracle::image {
namespace {

constexpr std::string_view kPasswd =
    "root:x:0:0:root:/root:/bin/sh\n# "
    "comment\n\nbroken\nweb:x:33:34:w:/:/bin/false\nbig:x:4294967295:0::/:\nneg:x:-1:0::/:\n"
    "web:x:99:99:second:/:/\r\nalone:x:77:78:::";
constexpr std::string_view kGroup =
    "root:x:0:\nadm:x:4:web,other\nwww:x:34:\nvideo:x:44:web\nvideo2:x:99999999999:web\nwheel:x:10:root";

TEST(User, is_found) {
  struct Row {
    std::string user;
    uint32_t uid, gid;
    std::vector<uint32_t> more;
  };
  for (const Row& row :
       {Row{"", 0, 0, {10}}, Row{"root", 0, 0, {10}}, Row{"web", 33, 34, {4, 44}}, Row{"33", 33, 34, {4, 44}},
        Row{"alone", 77, 78, {}}, Row{"1234", 1234, 0, {}}, Row{"1234:5", 1234, 5, {}}, Row{"web:adm", 33, 4, {}},
        Row{"web:10", 33, 10, {}}, Row{"0:0", 0, 0, {}}, Row{"2147483647", 2147483647, 0, {}}}) {
    auto got = find_user(row.user, kPasswd, kGroup);
    ASSERT_TRUE(got.ok()) << row.user << ": " << got.error().text();
    EXPECT_EQ(got->uid, row.uid) << row.user;
    EXPECT_EQ(got->gid, row.gid) << row.user;
    EXPECT_EQ(got->additional_gids, row.more) << row.user;
  }
}

TEST(User, has_a_home_where_the_file_says_so) {
  EXPECT_EQ(find_user("root", kPasswd, kGroup)->home, "/root");
  EXPECT_EQ(find_user("33:4", kPasswd, kGroup)->home, "/");
  for (const char* user : {"alone", "1234"}) EXPECT_EQ(find_user(user, kPasswd, kGroup)->home, "") << user;
}

TEST(User, is_refused) {
  for (const char* user : {"nobody", "big", "neg", "2147483648", "4294967295", "99999999999999999999", "-1", ":", "web:", ":adm",
                           "web:none", "web:2147483648", "web:video2", "web:x:y", "0x10", " 0", "+1"}) {
    auto got = find_user(user, kPasswd, kGroup);
    ASSERT_FALSE(got.ok()) << user << " became " << got->uid;
    EXPECT_EQ(got.error().code(), Code::invalid) << user;
  }
  EXPECT_TRUE(find_user("5", "", "").ok()) << "a number needs no files";
}

}  // namespace
}  // namespace coracle::image

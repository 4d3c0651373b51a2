// SPDX-License-Identifier: Apache-2.0
// The mount of a path: as the path is written, and behind links that can be read without waiting for a server.
#include "runtime/sys/mount.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/sys/file.h"

namespace coracle::sys {
namespace {

class MountOfPathTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/coracle-mount-XXXXXX";
    path_ = ::mkdtemp(name);
    own_ = MUST(mount_around(path_)).place;
  }
  void TearDown() override { MUST(remove_tree(path_)); }
  void link(const std::string& name, const std::string& target) {
    ASSERT_EQ(::symlink(target.c_str(), (path_ + "/" + name).c_str()), 0);
  }
  std::string behind(const std::string& path) const { return MUST(mount_behind(path, path_)).place; }
  std::string path_, own_;
};

TEST_F(MountOfPathTest, links_are_followed_where_they_are_local) {
  link("data", "/proc");
  link("far", "data/self");
  link("up", "../.." + path_ + "/far");
  EXPECT_EQ(MUST(mount_around(path_ + "/data/a")).place, own_);
  for (const char* name : {"/data", "/data/a/b", "/far/x", "/up", "/up/../data/"})
    EXPECT_EQ(behind(path_ + name), "/proc") << name;
  EXPECT_EQ(behind("/proc/self/a"), "/proc");
}

TEST_F(MountOfPathTest, what_is_no_link_or_not_there_is_in_its_own_mount) {
  link("self", "self");
  link("away", "nowhere/at/all");
  for (const char* name : {"", "/", "/none/a", "/self/a", "/away", "/./none/../x"}) EXPECT_EQ(behind(path_ + name), own_) << name;
  EXPECT_EQ(behind("/"), "/");
  EXPECT_EQ(behind("/.."), "/");
}

TEST_F(MountOfPathTest, nothing_is_read_in_a_mount_that_is_not_local) {
  link("data", "/proc");
  EXPECT_EQ(behind(path_ + "/data/self/root/dev"), "/proc") << "the link /proc/self/root leads to /";
}

TEST(MountList, is_by_age_since_linux_6_8) {
  for (const char* release : {"6.8.0", "6.8-rc1", "6.12.43+deb13-amd64", "7.0", "10.1.2-x"})
    EXPECT_TRUE(lists_mounts_by_age(release)) << release;
  for (const char* release : {"6.7.12", "6.1.0-37-amd64", "5.19.0", "5.15"})
    EXPECT_FALSE(lists_mounts_by_age(release)) << release;
  for (const char* release : {"", "6", "6.", "x.y", "six.8"})
    EXPECT_TRUE(lists_mounts_by_age(release)) << release;  // not understood
}

}  // namespace
}  // namespace coracle::sys

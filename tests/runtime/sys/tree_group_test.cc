// SPDX-License-Identifier: Apache-2.0
// Giving a tree to a group: all of it, with the mode bits that the group needs, and nothing outside. Needs root.
#include "runtime/sys/tree_group.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "runtime/sys/file.h"

namespace coracle::sys {
namespace {

namespace fs = std::filesystem;

class TreeGroupTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
    char name[] = "/var/tmp/coracle-group-XXXXXX";
    directory_ = ::mkdtemp(name);
    root_ = directory_ + "/root";
    fs::create_directories(root_ + "/deep/er");
    for (const char* file : {"/one", "/deep/two", "/deep/er/three"}) std::ofstream(root_ + file) << "text";
    std::ofstream(directory_ + "/outside") << "the host's";
    fs::create_symlink(directory_ + "/outside", root_ + "/link");
  }
  void TearDown() override {
    if (!directory_.empty()) (void)remove_tree(directory_);
  }
  std::string shown(const std::string& path) const {  // "1234 2775"
    struct stat about {};
    EXPECT_EQ(::lstat((path.starts_with('/') ? path : root_ + "/" + path).c_str(), &about), 0) << path;
    char text[32];
    std::snprintf(text, sizeof text, "%u %o", about.st_gid, about.st_mode & 07777);
    return text;
  }
  Fd root() const { return MUST(open_directory(root_)); }
  std::string directory_, root_;
};

TEST_F(TreeGroupTest, gets_everything_and_may_write_it) {
  ::chmod((root_ + "/one").c_str(), 04700);
  ::chmod((root_ + "/deep").c_str(), 0700);
  ::chmod((root_ + "/deep/two").c_str(), 0400);
  EXPECT_FALSE(MUST(is_of_group(root(), 1234)));
  ASSERT_TRUE(give_to_group(root(), 1234, {}));
  EXPECT_TRUE(MUST(is_of_group(root(), 1234)));
  EXPECT_EQ(shown("one"), "1234 4760") << "what it was to its user stays";
  EXPECT_EQ(shown("deep"), "1234 2770");
  EXPECT_EQ(shown("deep/two"), "1234 660");
  EXPECT_EQ(shown("deep/er"), "1234 2775");
  EXPECT_EQ(shown("deep/er/three"), "1234 664");
  EXPECT_EQ(shown(root_), "1234 2775");
}

TEST_F(TreeGroupTest, one_that_was_cut_off_is_not_taken_for_done) {
  std::stop_source stopped;
  stopped.request_stop();
  EXPECT_EQ(give_to_group(root(), 1234, stopped.get_token()).error().code(), Code::cancelled);
  EXPECT_FALSE(MUST(is_of_group(root(), 1234)));
}

TEST_F(TreeGroupTest, goes_through_no_link) {
  ASSERT_TRUE(give_to_group(root(), 1234, {}));
  EXPECT_EQ(shown("link").substr(0, 4), "1234");
  EXPECT_EQ(shown(directory_ + "/outside"), "0 644");
}

TEST_F(TreeGroupTest, looks_at_the_root_alone_when_asked) {
  ::chown(root_.c_str(), -1, 1234);
  ::chmod(root_.c_str(), 0770);
  EXPECT_FALSE(MUST(is_of_group(root(), 1234))) << "what is made in it would not be the group's";
  ::chmod(root_.c_str(), 02770);
  EXPECT_TRUE(MUST(is_of_group(root(), 1234)));
}

}  // namespace
}  // namespace coracle::sys

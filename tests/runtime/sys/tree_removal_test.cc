// SPDX-License-Identifier: Apache-2.0
// Removal of trees that a container made difficult to remove: very deep or wide, in steps, and nothing outside them.
#include "runtime/sys/tree_removal.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "runtime/base/scope.h"
#include "runtime/sys/file.h"

namespace coracle::sys {
namespace {

class TreeRemovalTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/coracle-removal-XXXXXX";
    path_ = ::mkdtemp(name);
    dir_ = MUST(open_directory(path_));
    MUST(make_directory_at(dir_, "tree", 0755));
    tree_ = MUST(open_at(dir_, "tree", O_RDONLY | O_DIRECTORY));
  }
  void TearDown() override { MUST(remove_tree(path_)); }
  // Creates nested directories and returns the innermost one.
  static Fd dig(const Fd& from, int levels) {
    Fd at = MUST(duplicate(from));
    for (int i = 0; i < levels; ++i) {
      MUST(make_directory_at(at, "d", 0755));
      at = MUST(open_at(at, "d", O_RDONLY | O_DIRECTORY));
    }
    return at;
  }
  static void fill(const Fd& directory, int files) {
    for (int i = 0; i < files; ++i) MUST(open_at(directory, std::to_string(i), O_WRONLY | O_CREAT | O_EXCL, 0600));
  }
  bool is_there() const { return stat_at(dir_, "tree").ok(); }
  std::string path_;
  Fd dir_, tree_;
};

TEST_F(TreeRemovalTest, of_any_depth_with_few_descriptors) {
  fill(dig(tree_, 1000), 3);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit few{128, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  Scope back([&] { (void)::setrlimit(RLIMIT_NOFILE, &before); });
  MUST(remove_tree(dir_, "tree", {}));
  EXPECT_FALSE(is_there());
  MUST(remove_tree(dir_, "tree", {}));  // removing an absent tree succeeds
}

TEST_F(TreeRemovalTest, whose_deep_directories_have_many_deep_ones) {
  Fd middle = dig(tree_, 50);
  for (int i = 0; i < 100; ++i) {
    std::string name = "branch" + std::to_string(i);
    MUST(make_directory_at(middle, name, 0755));
    fill(dig(MUST(open_at(middle, name, O_RDONLY | O_DIRECTORY)), 40 + i % 3), 2);
  }
  fill(middle, 300);
  MUST(remove_tree(dir_, "tree", {}));
  EXPECT_FALSE(is_there());
}

TEST_F(TreeRemovalTest, of_any_width_up_to_so_many_entries) {
  fill(tree_, 2000);
  EXPECT_FALSE(MUST(remove_some(dir_, "tree", 1000)));
  EXPECT_EQ(MUST(list(tree_)).size(), 1000u);
  EXPECT_TRUE(MUST(remove_some(dir_, "tree", 5000)));
  EXPECT_FALSE(is_there());
  EXPECT_TRUE(MUST(remove_some(dir_, "tree", 1)));
}

TEST_F(TreeRemovalTest, until_it_is_stopped) {
  fill(tree_, 100);
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(remove_tree(dir_, "tree", stop.get_token()).error().code(), Code::cancelled);
  EXPECT_TRUE(is_there());
  MUST(remove_tree(dir_, "tree", {}));
}

TEST_F(TreeRemovalTest, and_nothing_that_links_lead_to) {
  MUST(make_directories(path_ + "/keep"));
  MUST(replace_file(path_ + "/keep/file", "x"));
  MUST(symlink_at("../keep", tree_, "directory"));
  MUST(symlink_at("../keep/file", tree_, "file"));
  ASSERT_EQ(::mkfifo((path_ + "/tree/pipe").c_str(), 0600), 0);
  MUST(remove_tree(dir_, "tree", {}));
  EXPECT_FALSE(is_there());
  EXPECT_TRUE(exists(path_ + "/keep/file"));
  MUST(symlink_at("keep", dir_, "tree"));
  MUST(remove_tree(dir_, "tree", {}));
  EXPECT_TRUE(exists(path_ + "/keep/file"));
}

}  // namespace
}  // namespace coracle::sys

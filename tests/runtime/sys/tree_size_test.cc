// SPDX-License-Identifier: Apache-2.0
// The disk space of a tree: counted in blocks, each inode once, only inside the tree and its file system.
#include "runtime/sys/tree_size.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>

#include "runtime/sys/file.h"

namespace coracle::sys {
namespace {

namespace fs = std::filesystem;

class TreeSizeTest : public ::testing::Test {
 protected:
  TreeSizeTest() {
    char name[] = "/var/tmp/coracle-size-XXXXXX";
    directory_ = ::mkdtemp(name);
    root_ = directory_ + "/root";
    fs::create_directory(root_);
  }
  ~TreeSizeTest() override { (void)remove_tree(directory_); }

  void write(const std::string& path, size_t bytes) const {
    Fd file = MUST(open(path, O_WRONLY | O_CREAT, 0644));
    ASSERT_TRUE(write_all(file, std::string(bytes, 'x')));
    ASSERT_TRUE(sync(file));  // file systems allocate a file's blocks when they write it
  }
  static int64_t blocks_of(const std::string& path) {
    struct stat about {};
    EXPECT_EQ(::lstat(path.c_str(), &about), 0);
    return int64_t(about.st_blocks) * 512;
  }
  TreeSize measure() const {
    Fd root = MUST(open_directory(root_));
    return MUST(tree_size(root, {}));
  }
  std::string directory_, root_;
};

TEST_F(TreeSizeTest, counts_blocks_of_files_and_directories) {
  fs::create_directories(root_ + "/a/b");
  write(root_ + "/one", 100'000);
  write(root_ + "/a/b/two", 5000);
  int64_t want = 0;
  for (const char* path : {"", "/a", "/a/b", "/one", "/a/b/two"}) want += blocks_of(root_ + path);
  TreeSize size = measure();
  EXPECT_EQ(size.bytes.count, want);
  EXPECT_EQ(size.entries, 4u);
  EXPECT_GE(size.bytes.count, 105'000);
}

TEST_F(TreeSizeTest, a_directory_with_nothing_in_it_is_empty) {
  Fd root = MUST(open_directory(root_));
  EXPECT_TRUE(MUST(is_empty(root)));
  fs::create_symlink("nowhere", root_ + "/link");
  EXPECT_FALSE(MUST(is_empty(root)));
  fs::remove(root_ + "/link");
  fs::create_directory(root_ + "/inner");
  EXPECT_FALSE(MUST(is_empty(root)));
  EXPECT_TRUE(MUST(is_empty(MUST(open_directory(root_ + "/inner")))));
}

TEST_F(TreeSizeTest, a_hole_takes_nothing) {
  write(root_ + "/sparse", 1);
  fs::resize_file(root_ + "/sparse", 1 << 30);
  EXPECT_LT(measure().bytes.count, 1 << 20);
}

TEST_F(TreeSizeTest, a_file_with_several_names_counts_once) {
  write(root_ + "/one", 100'000);
  int64_t once = measure().bytes.count;
  for (const char* name : {"/two", "/three"}) fs::create_hard_link(root_ + "/one", root_ + name);
  EXPECT_NEAR(double(measure().bytes.count), double(once), 3);
}

TEST_F(TreeSizeTest, follows_no_link) {
  write(directory_ + "/outside", 1'000'000);
  fs::create_symlink("../outside", root_ + "/link");
  fs::create_directory_symlink("..", root_ + "/up");
  EXPECT_LT(measure().bytes.count, 100'000);
}

// Deeper than the number of open directories, and with siblings to visit on the way back.
TEST_F(TreeSizeTest, a_deep_tree_is_counted_to_its_bottom) {
  Fd at = MUST(open_directory(root_));
  for (int depth = 0; depth < 1500; ++depth) {
    ASSERT_TRUE(make_directory_at(at, "d", 0755));
    if (depth % 100 == 0)
      for (const char* name : {"a", "z"}) {
        Fd file = MUST(open_at(at, name, O_WRONLY | O_CREAT, 0644));
        ASSERT_TRUE(write_all(file, std::string(50'000, 'x')));
        ASSERT_TRUE(sync(file));
      }
    at = MUST(open_at(at, "d", O_RDONLY | O_DIRECTORY));
  }
  TreeSize size = measure();
  EXPECT_EQ(size.entries, 1530u);
  EXPECT_GE(size.bytes.count, 30 * 50'000);
}

TEST_F(TreeSizeTest, stops_when_it_is_told_to) {
  std::stop_source stop;
  stop.request_stop();
  Fd root = MUST(open_directory(root_));
  auto size = tree_size(root, stop.get_token());
  ASSERT_FALSE(size);
  EXPECT_EQ(size.error().code(), Code::cancelled);
}

}  // namespace
}  // namespace coracle::sys

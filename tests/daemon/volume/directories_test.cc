// SPDX-License-Identifier: Apache-2.0
// The directories of volumes: found again, with readable names, set aside at once on deletion, and nothing else is ever touched.
#include "daemon/volume/local/directories.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <utility>

namespace coracle::volume {
namespace {

namespace fs = std::filesystem;

struct DirectoriesTest : testing::Test {
  DirectoriesTest() {
    char name[] = "/tmp/coracle-volumes-XXXXXX";
    directory = ::mkdtemp(name);
  }
  ~DirectoriesTest() override {
    fs::remove_all(directory);
    fs::remove(fstab());
  }
  static bool no_volumes(const std::string&) { return false; }
  std::string fstab() const { return directory + ".fstab"; }
  std::set<std::string> names(const std::string& root) const {  // except the marker file
    std::set<std::string> found;
    if (fs::exists(root))
      for (const auto& entry : fs::directory_iterator(root)) found.insert(entry.path().filename());
    found.erase(".coracle");
    return found;
  }
  std::string directory;
};

TEST_F(DirectoriesTest, a_claim_gets_one_and_the_same_each_time) {
  DiskDirectories directories({directory + "/volumes"}, no_volumes, fstab());
  auto made = directories.make({"shop", "data-db-0"}, "1234", Bytes(1 << 20));
  ASSERT_TRUE(made) << made.error().text();
  EXPECT_EQ(made->path, directory + "/volumes/shop_data-db-0_1234");
  EXPECT_FALSE(fs::exists(made->path)) << "not before a volume names it";
  ASSERT_TRUE(directories.publish(made->path));
  ASSERT_TRUE(directories.publish(made->path)) << "it may have been cut off here";
  struct stat info {};
  ASSERT_EQ(::stat(made->path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0777u) << "whoever the pod runs as";
  std::ofstream(made->path + "/file") << "text";
  EXPECT_EQ(MUST(directories.make({"shop", "data-db-0"}, "1234", Bytes(1 << 20))).path, made->path);
  EXPECT_TRUE(fs::exists(made->path + "/file"));
  EXPECT_NE(MUST(directories.make({"shop", "data-db-0"}, "5678", Bytes(1 << 20))).path, made->path)
      << "another claim of that name";
  struct stat root {};
  ASSERT_EQ(::stat((directory + "/volumes").c_str(), &root), 0);
  EXPECT_EQ(root.st_mode & 07777, 0711u) << "nobody else looks through them";
}

TEST_F(DirectoriesTest, the_longest_names_fit) {
  Key claim{std::string(63, 'n'), std::string(253, 'c')};
  std::string uid(36, 'u');
  DiskDirectories directories({directory}, no_volumes, fstab());
  auto made = directories.make(claim, uid, Bytes(1));
  ASSERT_TRUE(made) << made.error().text();
  EXPECT_TRUE(made->path.ends_with(uid));
  ASSERT_TRUE(directories.set_aside(made->path));
}

TEST_F(DirectoriesTest, of_several_roots_the_one_that_has_it) {
  DiskDirectories both({directory + "/a", directory + "/b"}, no_volumes, fstab());
  fs::create_directories(directory + "/b/shop_data_1");
  EXPECT_EQ(MUST(both.make({"shop", "data"}, "1", Bytes(1))).path, directory + "/b/shop_data_1");
  EXPECT_FALSE(DiskDirectories({}, no_volumes).make({"shop", "data"}, "1", Bytes(1)));
}

TEST_F(DirectoriesTest, what_is_deleted_is_gone_at_once_and_cleared_later) {
  DiskDirectories directories({directory}, no_volumes, fstab());
  std::string path = MUST(directories.make({"shop", "data"}, "1", Bytes(1))).path;
  ASSERT_TRUE(directories.publish(path));
  fs::create_directories(path + "/deep/er");
  std::ofstream(path + "/deep/er/file") << "text";
  ASSERT_TRUE(directories.set_aside(path));
  EXPECT_EQ(names(directory), (std::set<std::string>{".removed_shop_data_1"}));
  ASSERT_TRUE(directories.set_aside(path)) << "it may have been cut off here";
  DiskDirectories after({directory}, no_volumes, fstab());  // as in the next daemon
  ASSERT_TRUE(after.clear([](const auto&) { return false; }, {}));
  EXPECT_EQ(names(directory), (std::set<std::string>{}));
}

TEST_F(DirectoriesTest, what_no_volume_ever_named_goes_with_its_claim) {
  DiskDirectories directories({directory}, no_volumes, fstab());
  for (const char* claim : {"there", "gone", "named"}) ASSERT_TRUE(directories.make({"shop", claim}, "1", Bytes(1)));
  ASSERT_TRUE(directories.publish(directory + "/shop_named_1"));
  ASSERT_TRUE(directories.clear([](const std::string& name) { return name == "shop_there_1"; }, {}));
  EXPECT_EQ(names(directory), (std::set<std::string>{".new_shop_there_1", "shop_named_1"})) << "data is not ours to judge";
}

TEST_F(DirectoriesTest, one_that_was_cut_off_before_it_had_its_rights_is_made_anew) {
  fs::create_directories(directory + "/.staged_shop_data_1");  // with the mode that our umask gives
  ASSERT_EQ(::chmod((directory + "/.staged_shop_data_1").c_str(), 0700), 0);
  DiskDirectories directories({directory}, no_volumes, fstab());
  std::string path = MUST(directories.make({"shop", "data"}, "1", Bytes(1))).path;
  ASSERT_TRUE(directories.publish(path));
  struct stat info {};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0777u);
  ASSERT_TRUE(directories.clear([](const auto&) { return true; }, {}));
  EXPECT_EQ(names(directory), (std::set<std::string>{"shop_data_1"}));
}

TEST_F(DirectoriesTest, what_is_set_aside_while_others_are_cleared_goes_with_them) {
  DiskDirectories directories({directory}, no_volumes, fstab());
  ASSERT_TRUE(directories.make({"shop", "first"}, "1", Bytes(1)));
  std::string later = MUST(directories.make({"shop", "later"}, "1", Bytes(1))).path;
  ASSERT_TRUE(directories.publish(later));
  bool asked = false;
  auto waits = [&](const std::string&) {
    if (!std::exchange(asked, true)) {
      EXPECT_TRUE(directories.set_aside(later));
      EXPECT_TRUE(directories.clear([](const auto&) { return true; }, {})) << "which waits for nobody";
    }
    return false;
  };
  ASSERT_TRUE(directories.clear(waits, {}));
  EXPECT_EQ(names(directory), (std::set<std::string>{}));
}

TEST_F(DirectoriesTest, what_cannot_be_deleted_does_not_keep_the_rest) {
  constexpr uid_t kNobody = 65534;  // root can delete despite the modes
  const uid_t we = ::geteuid();
  const std::string stays = directory + "/.removed_shop_b_1";
  for (const char* each : {"a", "b", "c"}) {
    std::string name = directory + "/.removed_shop_" + each + "_1";
    fs::create_directories(name + "/in/deep");
    for (const std::string& place : {directory, name, name + "/in"}) ASSERT_TRUE(we || ::chown(place.c_str(), kNobody, 0) == 0);
  }
  ASSERT_EQ(::chmod((stays + "/in").c_str(), 0500), 0);
  ASSERT_TRUE(we || ::seteuid(kNobody) == 0);
  DiskDirectories directories({directory}, no_volumes, fstab());
  auto cleared = directories.clear([](const auto&) { return false; }, {});
  ASSERT_EQ(::seteuid(we), 0);
  ASSERT_EQ(::chmod((stays + "/in").c_str(), 0700), 0);
  ASSERT_FALSE(cleared);
  EXPECT_TRUE(cleared.error().text().starts_with("remove " + stays)) << cleared.error().text();
  EXPECT_EQ(names(directory), (std::set<std::string>{".removed_shop_b_1"}));
}

TEST_F(DirectoriesTest, nothing_else_is_set_aside) {
  DiskDirectories directories({directory + "/volumes"}, no_volumes, fstab());
  fs::create_directories(directory + "/volumes/shop_data_1/inner");
  fs::create_directories(directory + "/host");
  for (const std::string& path :
       {directory + "/host", directory + "/volumes", directory + "/volumes/shop_data_1/inner", directory + "/volumes/../host",
        directory + "/volumes/", directory + "/volumes/..", std::string("/"), std::string("")})
    EXPECT_FALSE(directories.set_aside(path)) << path;
  EXPECT_TRUE(fs::exists(directory + "/host"));
  EXPECT_TRUE(fs::exists(directory + "/volumes/shop_data_1/inner"));
}

TEST_F(DirectoriesTest, nothing_is_made_where_the_disk_is_not) {
  std::string disk = directory + "/disk", root = disk + "/volumes";
  auto made = [&](bool holds) {
    DiskDirectories directories(
        {root}, [&](const std::string& asked) { return holds && asked == root; }, fstab());
    auto done = directories.make({"shop", "data"}, "1", Bytes(1));
    return done ? "made" : done.error().text();
  };
  std::ofstream(fstab()) << "# " << disk << "\n/dev/sda1 / ext4\n/dev/sdb1\t" << disk << " ext4 noatime 0 2\n";
  EXPECT_EQ(made(false), "the disk of " + disk + " (" + fstab() + ") is not mounted");
  fs::remove(fstab());
  EXPECT_EQ(made(true), root + " holds volumes, and they are not there: is its disk mounted?");
  EXPECT_EQ(names(root), std::set<std::string>{});
  EXPECT_EQ(made(false), "made");
  EXPECT_EQ(made(true), "made") << "it is marked now";
}

TEST_F(DirectoriesTest, a_link_is_no_volume) {
  fs::create_directories(directory + "/host");
  std::ofstream(directory + "/host/file") << "the host's";
  fs::create_directories(directory + "/volumes");
  fs::create_directory_symlink(directory + "/host", directory + "/volumes/shop_data_1");
  DiskDirectories directories({directory + "/volumes"}, no_volumes, fstab());
  EXPECT_FALSE(directories.make({"shop", "data"}, "1", Bytes(1)));
  ASSERT_TRUE(directories.set_aside(directory + "/volumes/shop_data_1"));
  (void)directories.clear([](const auto&) { return false; }, {});
  EXPECT_TRUE(fs::exists(directory + "/host/file"));
}

TEST_F(DirectoriesTest, staged_content_takes_the_volumes_place_at_once) {
  DiskDirectories directories({directory}, no_volumes, fstab());
  auto waits = [](const std::string&) { return true; };
  std::string path = MUST(directories.make({"shop", "data"}, "1", Bytes(1 << 20))).path;
  ASSERT_TRUE(directories.publish(path));
  std::ofstream(path + "/old") << "o";
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(directories.stage(path, Bytes(1 << 20)));
    std::ofstream(directory + "/.staged_shop_data_1/new") << i;
    ASSERT_TRUE(directories.clear(waits, {})) << "not what is being staged";
    EXPECT_TRUE(fs::exists(path + (i == 0 ? "/old" : "/new")));
    ASSERT_TRUE(directories.put_staged(path));
    EXPECT_EQ(names(path), std::set<std::string>{"new"});
  }
  ASSERT_TRUE(directories.stage(path, Bytes(1 << 20)));
  ASSERT_TRUE(directories.unstage(path));
  ASSERT_TRUE(directories.unstage(path)) << "again is no error";
  EXPECT_EQ(names(path), std::set<std::string>{"new"});
  ASSERT_TRUE(directories.set_aside(path)) << "beside what was removed before";
  EXPECT_EQ(names(directory).size(), 3u);
  ASSERT_TRUE(directories.clear(waits, {}));
  EXPECT_EQ(names(directory), std::set<std::string>{});
}

TEST_F(DirectoriesTest, what_is_unstaged_while_clear_runs_goes_too) {
  DiskDirectories directories({directory}, no_volumes, fstab());
  std::string path = MUST(directories.make({"shop", "data"}, "1", Bytes(1 << 20))).path;
  bool is_first = true;
  auto waits = [&](const std::string&) {  // called after the entries are listed
    if (std::exchange(is_first, false)) {
      EXPECT_TRUE(directories.stage(path, Bytes(1 << 20)));
      EXPECT_TRUE(directories.unstage(path));
    }
    return true;
  };
  ASSERT_TRUE(directories.clear(waits, {}));
  EXPECT_FALSE(is_first);
  EXPECT_EQ(names(directory), std::set<std::string>{".new_shop_data_1"});
}

TEST_F(DirectoriesTest, what_was_staged_by_another_daemon_goes) {
  std::string path;
  {
    DiskDirectories before({directory}, no_volumes, fstab());
    path = MUST(before.make({"shop", "data"}, "1", Bytes(1 << 20))).path;
    ASSERT_TRUE(before.publish(path));
    ASSERT_TRUE(before.stage(path, Bytes(1 << 20)));
  }
  DiskDirectories directories({directory}, no_volumes, fstab());
  ASSERT_TRUE(directories.clear([](const std::string&) { return true; }, {}));
  EXPECT_EQ(names(directory), std::set<std::string>{"shop_data_1"});
  EXPECT_EQ(directories.stage(directory + "/elsewhere/x", Bytes(1)).error().code(), Code::invalid);
}

}  // namespace
}  // namespace coracle::volume

// SPDX-License-Identifier: Apache-2.0
// The directories of volumes: found again, with readable names, set aside at once on deletion, and nothing else is ever touched.
#include "daemon/volume/local/directories.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <latch>
#include <map>
#include <mutex>
#include <semaphore>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/sys/file.h"

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
  static bool answers(const std::string&) { return true; }
  // Each root, one after the other.
  static Result<void> clear(DiskDirectories& directories, const Directories::Waits& waits) {
    Result<void> done;
    for (const std::string& root : directories.roots())
      if (auto cleared = directories.clear(root, waits, {}); !cleared && done) done = std::move(cleared);
    return done;
  }
  // Runs the test on a thread with a mount namespace of its own: the other threads keep their mounts.
  static void with_mounts(const std::function<void()>& test) {
    bool may_mount = false;
    std::thread([&] {
      may_mount = ::unshare(CLONE_NEWNS) == 0 && ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
      if (may_mount) test();
    }).join();
    if (!may_mount) GTEST_SKIP() << "may not mount here";
  }
  static bool bind(const std::string& from, const std::string& to) {
    return ::mount(from.c_str(), to.c_str(), nullptr, MS_BIND, nullptr) == 0;
  }
  std::string fstab() const { return directory + ".fstab"; }
  ExpectedMounts expected() const { return {fstab(), {}}; }
  std::set<std::string> names(const std::string& root) const {  // except the marker file and the records
    std::set<std::string> found;
    if (fs::exists(root))
      for (const auto& entry : fs::directory_iterator(root)) found.insert(entry.path().filename());
    found.erase(".coracle"), found.erase(".coracle.projects");
    return found;
  }
  std::string directory;
};

TEST_F(DirectoriesTest, a_claim_gets_one_and_the_same_each_time) {
  DiskDirectories directories({directory + "/volumes"}, no_volumes, expected());
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
  DiskDirectories directories({directory}, no_volumes, expected());
  auto made = directories.make(claim, uid, Bytes(1));
  ASSERT_TRUE(made) << made.error().text();
  EXPECT_TRUE(made->path.ends_with(uid));
  ASSERT_TRUE(directories.set_aside(made->path));
}

TEST_F(DirectoriesTest, of_several_roots_the_one_that_has_it) {
  DiskDirectories both({directory + "/a", directory + "/b"}, no_volumes, expected());
  fs::create_directories(directory + "/b/shop_data_1");
  EXPECT_EQ(MUST(both.make({"shop", "data"}, "1", Bytes(1))).path, directory + "/b/shop_data_1");
  EXPECT_FALSE(DiskDirectories({}, no_volumes).make({"shop", "data"}, "1", Bytes(1)));
}

TEST_F(DirectoriesTest, one_root_may_be_wanted) {
  const std::string a = directory + "/a", b = directory + "/b";
  std::ofstream(fstab()) << "/dev/sdb1 " << a << " ext4\n";  // and is not mounted
  DiskDirectories both({a, b}, no_volumes, expected());
  auto made = both.make({"shop", "data"}, "1", Bytes(1), b);
  ASSERT_TRUE(made) << made.error().text();
  EXPECT_EQ(made->path, b + "/shop_data_1");
  EXPECT_TRUE(made->passed_over.empty()) << "the other one does not matter";
  EXPECT_EQ(both.make({"shop", "data"}, "2", Bytes(1), a).error().code(), Code::unavailable) << "and b is not meant";
  EXPECT_EQ(names(b), std::set<std::string>{".new_shop_data_1"});
  EXPECT_EQ(MUST(both.make({"shop", "data"}, "1", Bytes(1), a)).path, b + "/shop_data_1") << "where it is it stays";
  EXPECT_EQ(both.make({"shop", "data"}, "3", Bytes(1), directory + "/c").error().code(), Code::invalid);
  fs::remove(fstab());
  auto staged = both.stage_first({"shop", "data"}, "4", Bytes(1), a);
  ASSERT_TRUE(staged && *staged);
  EXPECT_EQ((*staged)->path, a + "/shop_data_4");
}

TEST_F(DirectoriesTest, what_is_deleted_is_gone_at_once_and_cleared_later) {
  DiskDirectories directories({directory}, no_volumes, expected());
  std::string path = MUST(directories.make({"shop", "data"}, "1", Bytes(1))).path;
  ASSERT_TRUE(directories.publish(path));
  fs::create_directories(path + "/deep/er");
  std::ofstream(path + "/deep/er/file") << "text";
  ASSERT_TRUE(directories.set_aside(path));
  EXPECT_EQ(names(directory), (std::set<std::string>{".removed_shop_data_1"}));
  ASSERT_TRUE(directories.set_aside(path)) << "it may have been cut off here";
  DiskDirectories after({directory}, no_volumes, expected());  // as in the next daemon
  ASSERT_TRUE(clear(after, [](const auto&) { return false; }));
  EXPECT_EQ(names(directory), (std::set<std::string>{}));
}

TEST_F(DirectoriesTest, what_no_volume_ever_named_goes_with_its_claim) {
  DiskDirectories directories({directory}, no_volumes, expected());
  for (const char* claim : {"there", "gone", "named"}) ASSERT_TRUE(directories.make({"shop", claim}, "1", Bytes(1)));
  ASSERT_TRUE(directories.publish(directory + "/shop_named_1"));
  ASSERT_TRUE(clear(directories, [](const std::string& name) { return name == "shop_there_1"; }));
  EXPECT_EQ(names(directory), (std::set<std::string>{".new_shop_there_1", "shop_named_1"})) << "data is not ours to judge";
}

TEST_F(DirectoriesTest, one_that_was_cut_off_before_it_had_its_rights_is_made_anew) {
  fs::create_directories(directory + "/.staged_shop_data_1");  // with the mode that our umask gives
  ASSERT_EQ(::chmod((directory + "/.staged_shop_data_1").c_str(), 0700), 0);
  DiskDirectories directories({directory}, no_volumes, expected());
  std::string path = MUST(directories.make({"shop", "data"}, "1", Bytes(1))).path;
  ASSERT_TRUE(directories.publish(path));
  struct stat info {};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0777u);
  ASSERT_TRUE(clear(directories, [](const auto&) { return true; }));
  EXPECT_EQ(names(directory), (std::set<std::string>{"shop_data_1"}));
}

TEST_F(DirectoriesTest, what_is_set_aside_while_others_are_cleared_goes_with_them) {
  DiskDirectories directories({directory}, no_volumes, expected());
  ASSERT_TRUE(directories.make({"shop", "first"}, "1", Bytes(1)));
  std::string later = MUST(directories.make({"shop", "later"}, "1", Bytes(1))).path;
  ASSERT_TRUE(directories.publish(later));
  bool asked = false;
  auto waits = [&](const std::string&) {
    if (!std::exchange(asked, true)) {
      EXPECT_TRUE(directories.set_aside(later));
      EXPECT_TRUE(clear(directories, [](const auto&) { return true; })) << "which waits for nobody";
    }
    return false;
  };
  ASSERT_TRUE(clear(directories, waits));
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
  DiskDirectories directories({directory}, no_volumes, expected());
  auto cleared = clear(directories, [](const auto&) { return false; });
  ASSERT_EQ(::seteuid(we), 0);
  ASSERT_EQ(::chmod((stays + "/in").c_str(), 0700), 0);
  ASSERT_FALSE(cleared);
  EXPECT_TRUE(cleared.error().text().starts_with("remove " + stays)) << cleared.error().text();
  EXPECT_EQ(names(directory), (std::set<std::string>{".removed_shop_b_1"}));
}

TEST_F(DirectoriesTest, nothing_else_is_set_aside) {
  DiskDirectories directories({directory + "/volumes"}, no_volumes, expected());
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
        {root}, [&](const std::string& asked) { return holds && asked == root; }, expected());
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

TEST_F(DirectoriesTest, nothing_is_deleted_while_the_disk_is_away) {
  const std::string root = directory + "/disk/volumes", away = directory + "/away";
  DiskDirectories directories({root}, no_volumes, expected());
  std::string path = MUST(directories.make({"shop", "data"}, "1", Bytes(1))).path;
  ASSERT_TRUE(directories.publish(path));
  std::ofstream(path + "/file") << "text";
  fs::rename(directory + "/disk", away);
  EXPECT_EQ(directories.set_aside(path).error().code(), Code::unavailable) << "without the mount point";
  EXPECT_EQ(directories.set_size(path, Bytes(2)).error().code(), Code::unavailable);
  fs::create_directories(root);
  EXPECT_EQ(directories.set_aside(path).error().code(), Code::unavailable) << "with an empty one";
  EXPECT_EQ(directories.publish(path).error().code(), Code::unavailable);
  EXPECT_EQ(directories.set_size(path, Bytes(2)).error().code(), Code::unavailable);
  EXPECT_EQ(names(root), std::set<std::string>{});
  EXPECT_FALSE(fs::exists(root + "/.coracle"));
  fs::remove_all(directory + "/disk");
  fs::rename(away, directory + "/disk");
  ASSERT_TRUE(directories.set_aside(path));
  EXPECT_EQ(names(root), (std::set<std::string>{".removed_shop_data_1"}));
  ASSERT_TRUE(directories.set_aside(path)) << "the disk is there, and the volume is not";
}

TEST_F(DirectoriesTest, a_disk_that_lost_its_mark_is_cleared_all_the_same) {
  DiskDirectories directories(
      {directory}, [](const std::string&) { return true; }, expected());
  fs::create_directories(directory + "/shop_data_1");
  ASSERT_TRUE(directories.set_aside(directory + "/shop_data_1"));
  ASSERT_TRUE(clear(directories, [](const auto&) { return false; }));
  EXPECT_EQ(names(directory), std::set<std::string>{});
  EXPECT_EQ(clear(directories, [](const auto&) { return false; }).error().code(), Code::unavailable);
}

TEST_F(DirectoriesTest, a_root_that_cannot_be_used_is_said_and_does_not_matter_to_the_others) {
  std::string bad = directory + "/file", away = directory + "/away", good = directory + "/good";
  std::ofstream(bad) << "no directory";
  std::ofstream(fstab()) << "/dev/sdb1 " << away << " ext4\n";
  auto holds = [](const std::string&) { return false; };
  for (std::vector<std::string> roots : {std::vector{bad, away, good}, std::vector{good, away, bad}}) {
    DiskDirectories directories(roots, holds, expected());
    auto made = directories.make({"shop", roots.front() == good ? "b" : "a"}, "1", Bytes(1));
    ASSERT_TRUE(made) << made.error().text();
    EXPECT_TRUE(made->path.starts_with(good + "/"));
    ASSERT_EQ(made->passed_over.size(), 2u);
    const bool bad_first = roots.front() == bad;
    EXPECT_TRUE(made->passed_over[bad_first ? 0 : 1].starts_with(bad + " cannot be used: ")) << made->passed_over[0];
    EXPECT_EQ(made->passed_over[bad_first ? 1 : 0], "the disk of " + away + " (" + fstab() + ") is not mounted");
    ASSERT_TRUE(directories.publish(made->path));
    ASSERT_TRUE(directories.set_aside(made->path));
    (void)clear(directories, [](const auto&) { return false; });  // it reports the bad root
    EXPECT_EQ(names(good), std::set<std::string>{});
  }
  EXPECT_FALSE(fs::exists(away)) << "nothing is created where a disk belongs";
  EXPECT_FALSE(DiskDirectories({bad, away}, holds, expected()).make({"shop", "c"}, "1", Bytes(1)));
}

TEST_F(DirectoriesTest, mounts_that_this_machine_makes_at_start) {
  const std::string disk = directory + "/my disk", units = directory + "/units";
  auto missing = [&](const std::string& place) {
    auto found = missing_mount({fstab(), {units}}, place);
    return found ? found->place + " by " + found->source.substr(directory.size()) : "none";
  };
  auto table = [&](const std::string& options, const std::string& end = "") {
    std::ofstream(fstab()) << "UUID=1 / ext4 defaults 0 1\n/dev/sdb1 " << directory << "/my\\040disk" << end << " ext4 "
                           << options << " 0 2\n";
  };
  EXPECT_EQ(missing(disk), "none");
  table("defaults,noatime");
  EXPECT_EQ(missing(disk), disk + " by .fstab");
  EXPECT_EQ(missing(disk + "/volumes"), disk + " by .fstab");
  EXPECT_EQ(missing(disk + "s"), "none");
  table("defaults", "/");
  EXPECT_EQ(missing(disk + "/volumes"), disk + " by .fstab") << "with a slash at its end";
  table("loop,noauto");
  EXPECT_EQ(missing(disk), "none") << "somebody mounts it by hand";
  table("noauto,x-systemd.automount");
  EXPECT_EQ(missing(disk), disk + " by .fstab");
  fs::remove(fstab());
  const std::string unit = unit_name(disk) + ".mount";
  fs::create_directories(units + "/local-fs.target.wants");
  std::ofstream(units + "/" + unit) << "[Mount]\n";
  EXPECT_EQ(missing(disk), "none") << "the unit is disabled";
  fs::create_symlink(units + "/" + unit, units + "/local-fs.target.wants/" + unit);
  EXPECT_EQ(missing(disk + "/volumes"), disk + " by /units/local-fs.target.wants/" + unit);
  fs::remove(units + "/" + unit);
  fs::create_symlink("/dev/null", units + "/" + unit);
  EXPECT_EQ(missing(disk), "none") << "the unit is masked";
  std::ofstream(fstab()) << "proc /proc proc defaults 0 0\n";
  EXPECT_EQ(missing("/proc/volumes"), "none") << "it is mounted";
}

TEST_F(DirectoriesTest, units_are_named_as_systemd_names_them) {
  EXPECT_EQ(unit_name("/srv/volumes"), "srv-volumes");
  EXPECT_EQ(unit_name("/srv//my disk/"), "srv-my\\x20disk");
  EXPECT_EQ(unit_name("/.hidden/a.b-c"), "\\x2ehidden-a.b\\x2dc");
  EXPECT_EQ(unit_name("/"), "-");
}

TEST_F(DirectoriesTest, a_volume_is_known_by_every_path) {
  const std::string root = directory + "/volumes";
  DiskDirectories directories({root}, no_volumes, expected());
  for (const char* claim : {"data", "other"}) ASSERT_TRUE(directories.make({"shop", claim}, "1", Bytes(1)));
  const std::string path = root + "/shop_data_1";
  EXPECT_TRUE(MUST(directories.holds(path, root + "/.new_shop_data_1", answers))) << "before it is published";
  ASSERT_TRUE(directories.publish(path));
  ASSERT_TRUE(directories.publish(root + "/shop_other_1"));
  fs::create_directories(path + "/deep/er");
  std::ofstream(path + "/deep/file") << "text";
  fs::create_directory_symlink(path, directory + "/link");
  fs::create_directory_symlink("deep/er", path + "/inner");
  for (const std::string& place :
       {path, path + "/", root + "//shop_data_1/.", directory + "/link", root + "/shop_other_1/../shop_data_1", path + "/deep/er",
        path + "/deep/file", directory + "/link/inner"})
    EXPECT_TRUE(MUST(directories.holds(path, place, answers))) << place;
  fs::create_symlink(directory + "/circle", directory + "/circle");
  for (const std::string& place : {root, directory, std::string("/"), root + "/shop_other_1", path + "/missing", path + "_2",
                                   path + "/deep/file/missing", std::string("/dev/null"), directory + "/circle",
                                   directory + "/" + std::string(300, 'n'), directory + std::string(5000, '/') + "n"})
    EXPECT_FALSE(MUST(directories.holds(path, place, answers))) << place;
  auto silent = directories.holds(path, directory + "/link", [](const std::string&) { return false; });
  ASSERT_FALSE(silent);
  EXPECT_EQ(silent.error().code(), Code::timeout);
  EXPECT_EQ(silent.error().text(), directory + "/link does not answer: its disk or its server may be away");
}

TEST_F(DirectoriesTest, a_volume_is_known_through_other_mounts_of_its_parts) {
  with_mounts([&] {
    const std::string disk = directory + "/my disk", root = disk + "/volumes", path = root + "/shop_data_1";
    for (const std::string& each : {disk, directory + "/media", directory + "/file", directory + "/all", directory + "/other",
                                    directory + "/again", directory + "/plain"})
      fs::create_directories(each);
    ASSERT_EQ(::mount("none", disk.c_str(), "tmpfs", 0, nullptr), 0);
    for (const std::string& each : {path + "/sub/er", path + "/disk", root + "/shop_data_12/sub"}) fs::create_directories(each);
    std::ofstream(path + "/file") << "text";
    std::ofstream(directory + "/file/one") << "";
    DiskDirectories directories({root}, no_volumes, expected());
    ASSERT_TRUE(bind(path + "/sub", directory + "/media"));
    ASSERT_TRUE(bind(path + "/file", directory + "/file/one"));
    ASSERT_TRUE(bind(disk, directory + "/all"));
    ASSERT_TRUE(bind(directory + "/media/er", directory + "/again"));
    ASSERT_TRUE(bind(root + "/shop_data_12/sub", directory + "/other"));
    ASSERT_EQ(::mount("none", (path + "/disk").c_str(), "tmpfs", 0, nullptr), 0);
    ASSERT_EQ(::mount("none", (directory + "/plain").c_str(), "tmpfs", 0, nullptr), 0);
    fs::create_directories(directory + "/plain/volumes/shop_data_1");
    for (const char* each : {"/media", "/media/er", "/media/er/..", "/file/one", "/all/volumes/shop_data_1",
                             "/all/volumes/shop_data_1/sub", "/again", "/my disk/volumes/shop_data_1/disk"})
      EXPECT_TRUE(MUST(directories.holds(path, directory + each, answers))) << each;
    for (const char* each : {"/other", "/all", "/all/volumes", "/all/volumes/shop_data_12", "/plain",
                             "/plain/volumes/shop_data_1", "/media/missing", ""})
      EXPECT_FALSE(MUST(directories.holds(path, directory + each, answers))) << each;
  });
}

// Mounts the file system of a FUSE program that answers nothing, as long as the descriptor is open. Invalid: this machine has no
// FUSE.
Fd mount_silent_program(const char* source, const std::string& place, const char* type) {
  auto program = sys::open("/dev/fuse", O_RDWR);
  if (!program) return {};
  fs::create_directories(place);
  const std::string options = "fd=" + std::to_string(program->get()) + ",rootmode=40000,user_id=0,group_id=0";
  if (::mount(source, place.c_str(), type, MS_NOSUID | MS_NODEV, options.c_str()) != 0) return {};
  return *std::move(program);
}

TEST_F(DirectoriesTest, what_a_program_shows_may_be_the_volume) {
  with_mounts([&] {
    const std::string root = directory + "/volumes", shown = directory + "/shown", path = root + "/shop_data_1";
    fs::create_directories(path);
    Fd program = mount_silent_program("view", shown, "fuse.bindfs");
    if (!program) GTEST_SKIP() << "this machine has no FUSE";
    DiskDirectories directories({root}, no_volumes, expected());
    auto held = directories.holds(path, shown, answers);
    ASSERT_FALSE(held) << *held;
    EXPECT_EQ(held.error().code(), Code::unavailable);
    EXPECT_TRUE(held.error().text().starts_with(shown + " is on a file system of the type fuse")) << held.error().text();
    EXPECT_TRUE(MUST(directories.holds(path, path, answers))) << "the others are told";
    EXPECT_FALSE(MUST(directories.holds(path, directory, answers)));
  });
}

TEST_F(DirectoriesTest, what_a_program_has_from_elsewhere_is_not_the_volume_and_is_not_asked) {
  with_mounts([&] {
    const std::string root = directory + "/volumes", remote = directory + "/remote", path = root + "/shop_data_1";
    fs::create_directories(path);
    Fd program = mount_silent_program("me@host:/", remote, "fuse.sshfs");
    if (!program) GTEST_SKIP() << "this machine has no FUSE";
    DiskDirectories directories({root}, no_volumes, expected());
    EXPECT_FALSE(MUST(directories.holds(path, remote + "/data", [](const std::string&) { return false; })));
  });
}

// A file system with project quotas, in memory.
struct Quotas {
  std::map<ino_t, uint32_t> projects;
  std::map<uint32_t, Bytes> limits;
  int writes = 0;
  static ino_t inode_of(const Fd& directory) { return MUST(sys::stat(directory)).st_ino; }
  ProjectCalls calls() {
    return {.project_of = [this](const Fd& directory) -> Result<uint32_t> { return projects[inode_of(directory)]; },
            .set_project = [this](const Fd& directory, uint32_t number) -> Result<void> {
              writes += projects[inode_of(directory)] != number;
              projects[inode_of(directory)] = number;
              return {};
            },
            .set_limit = [this](const Fd&, uint32_t number, Bytes limit) -> Result<void> {
              ++writes;
              limits[number] = limit;
              if (limit.count == 0) limits.erase(number);
              return {};
            },
            .use = [this](const Fd&, uint32_t number) -> Result<sys::ProjectUse> {
              auto inodes = std::ranges::count_if(projects, [&](const auto& each) { return each.second == number; });
              if (inodes == 0 && !limits.contains(number)) return Error(Code::not_found, "no such quota");
              return sys::ProjectUse{Bytes(1000), limits.contains(number) ? limits[number] : Bytes(0), uint64_t(inodes)};
            }};
  }
};

TEST_F(DirectoriesTest, a_volume_has_the_project_that_it_was_given_whatever_its_owner_says) {
  Quotas quotas;
  DiskDirectories directories({directory}, no_volumes, expected(), quotas.calls());
  auto make = [&](const std::string& claim) {
    std::string path = MUST(directories.make({"shop", claim}, "1", Bytes(4096))).path;
    EXPECT_TRUE(directories.publish(path));
    return path;
  };
  const std::string mine = make("mine"), other = make("other");
  Fd my_directory = MUST(sys::open_directory(mine)), other_directory = MUST(sys::open_directory(other));
  uint32_t &my_project = quotas.projects[Quotas::inode_of(my_directory)],
           &other_project = quotas.projects[Quotas::inode_of(other_directory)];
  const uint32_t given = my_project, others = other_project;
  ASSERT_NE(given, others);
  EXPECT_EQ(quotas.limits[given], Bytes(4096));

  const int writes = quotas.writes;
  auto held = MUST(directories.hold(mine, Bytes(4096)));
  ASSERT_TRUE(held);
  EXPECT_FALSE(held->was);
  EXPECT_EQ(quotas.writes, writes) << "nothing to correct, nothing written";

  for (uint32_t said : {0u, 17u, others}) {
    my_project = said;
    EXPECT_EQ(directories.use_of(mine, my_directory)->limit, Bytes(4096)) << "of the recorded project";
    auto corrected = MUST(directories.hold(mine, Bytes(4096)));
    ASSERT_TRUE(corrected);
    EXPECT_EQ(corrected->was, said);
    EXPECT_EQ(my_project, given);
    EXPECT_FALSE(MUST(directories.hold(mine, Bytes(4096)))->was) << "said once";
  }
  my_project = others;
  ASSERT_TRUE(directories.set_size(mine, Bytes(8192)));
  EXPECT_EQ(quotas.limits[given], Bytes(8192));
  EXPECT_EQ(quotas.limits[others], Bytes(4096)) << "nobody enlarges another's volume";
  EXPECT_EQ(MUST(directories.hold(mine, Bytes(4096)))->use.limit, Bytes(8192)) << "an expansion is not undone";

  my_project = others;
  ASSERT_TRUE(directories.set_aside(mine));
  ASSERT_TRUE(clear(directories, [](const auto&) { return false; }));
  EXPECT_FALSE(quotas.limits.contains(given)) << "the number is free again";
  EXPECT_EQ(quotas.limits[others], Bytes(4096)) << "and the other volume keeps its limit";
  EXPECT_EQ(std::distance(fs::directory_iterator(directory + "/.coracle.projects"), {}), 1) << "one record for one volume";
}

TEST_F(DirectoriesTest, a_volume_without_a_record_keeps_the_project_that_it_has) {
  Quotas quotas;
  std::string path;
  {
    DiskDirectories before({directory}, no_volumes, expected(), quotas.calls());
    path = MUST(before.make({"shop", "data"}, "1", Bytes(4096))).path;
    ASSERT_TRUE(before.publish(path));
  }
  Fd opened = MUST(sys::open_directory(path));
  uint32_t& project = quotas.projects[Quotas::inode_of(opened)];
  const uint32_t given = project;
  fs::remove_all(directory + "/.coracle.projects");  // as an earlier version left it
  DiskDirectories directories({directory}, no_volumes, expected(), quotas.calls());
  EXPECT_EQ(directories.use_of(path, opened)->limit, Bytes(4096));
  ASSERT_TRUE(MUST(directories.hold(path, Bytes(4096))));
  project = 0;
  EXPECT_EQ(MUST(directories.hold(path, Bytes(4096)))->was, 0u) << "it is recorded now";
  EXPECT_EQ(project, given);
}

TEST_F(DirectoriesTest, imported_content_brings_its_project) {
  Quotas quotas;
  DiskDirectories directories({directory}, no_volumes, expected(), quotas.calls());
  std::string path = MUST(directories.make({"shop", "data"}, "1", Bytes(4096))).path;
  ASSERT_TRUE(directories.publish(path));
  ASSERT_TRUE(directories.stage(path, Bytes(4096)));
  ASSERT_TRUE(directories.put_staged(path));
  ASSERT_TRUE(clear(directories, [](const auto&) { return true; }));
  Fd opened = MUST(sys::open_directory(path));
  EXPECT_EQ(directories.use_of(path, opened)->limit, Bytes(4096));
  EXPECT_EQ(quotas.limits.size(), 1u) << "the old content's is gone";
  EXPECT_EQ(std::distance(fs::directory_iterator(directory + "/.coracle.projects"), {}), 1);
}

TEST_F(DirectoriesTest, a_root_that_hangs_does_not_hinder_the_others) {
  const std::string sick = directory + "/sick", well = directory + "/well";
  for (const std::string& each : {sick + "/shop_data_1", well + "/shop_data_2"}) fs::create_directories(each);
  Quotas quotas;
  std::promise<void> hangs, returns;
  std::once_flag is_sick;
  ProjectCalls calls = quotas.calls();
  calls.project_of = [&, project_of = calls.project_of](const Fd& which) {
    if (MUST(sys::place_of(which)).starts_with(sick))
      std::call_once(is_sick, [&] { hangs.set_value(), returns.get_future().wait(); });
    return project_of(which);
  };
  DiskDirectories directories({sick, well}, no_volumes, expected(), calls);
  std::thread waits([&] { (void)directories.set_size(sick + "/shop_data_1", Bytes(4096)); });
  hangs.get_future().wait();
  auto others = std::async(std::launch::async, [&] {
    const std::string path = well + "/shop_data_2";
    EXPECT_TRUE(directories.set_size(path, Bytes(4096)));
    EXPECT_TRUE(MUST(directories.hold(path, Bytes(4096))));
    EXPECT_TRUE(directories.use_of(path, MUST(sys::open_directory(path))));
    EXPECT_TRUE(directories.stage(path, Bytes(4096)));
    EXPECT_TRUE(directories.unstage(path));
  });
  EXPECT_EQ(others.wait_for(std::chrono::seconds(60)), std::future_status::ready);
  returns.set_value();
  waits.join();
  others.wait();
}

TEST_F(DirectoriesTest, who_comes_to_a_root_that_hangs_does_not_wait_for_it) {
  const std::string sick = directory + "/sick", well = directory + "/well";
  for (const std::string& each : {sick + "/shop_data_1", sick + "/shop_data_2", well}) fs::create_directories(each);
  Quotas quotas;
  std::promise<void> hangs, returns;
  std::once_flag is_sick;
  ProjectCalls calls = quotas.calls();
  calls.project_of = [&, project_of = calls.project_of](const Fd& which) {
    if (MUST(sys::place_of(which)) == sick + "/shop_data_1")
      std::call_once(is_sick, [&] { hangs.set_value(), returns.get_future().wait(); });
    return project_of(which);
  };
  DiskDirectories directories({sick, well}, no_volumes, expected(), calls, std::chrono::nanoseconds(0));
  ASSERT_TRUE(directories.stage(sick + "/shop_data_2", Bytes(4096)));
  std::thread waits([&] { EXPECT_TRUE(directories.set_size(sick + "/shop_data_1", Bytes(4096))); });
  hangs.get_future().wait();
  auto others = std::async(std::launch::async, [&] {
    const std::string path = sick + "/shop_data_2";
    EXPECT_EQ(directories.set_size(path, Bytes(4096)).error().code(), Code::unavailable);
    EXPECT_EQ(directories.hold(path, Bytes(4096)).error().code(), Code::unavailable);
    EXPECT_EQ(directories.stage(path, Bytes(4096)).error().code(), Code::unavailable);
    EXPECT_EQ(directories.publish(path).error().code(), Code::unavailable);
    EXPECT_EQ(directories.set_aside(path).error().code(), Code::unavailable);
    EXPECT_TRUE(directories.put_staged(path)) << "what was copied is not given up";
    EXPECT_TRUE(directories.unstage(path));
    auto made = directories.make({"shop", "data"}, "3", Bytes(4096));
    ASSERT_TRUE(made);
    EXPECT_EQ(made->path, well + "/shop_data_3");
    ASSERT_EQ(made->passed_over.size(), 1u);
    EXPECT_TRUE(made->passed_over[0].starts_with(sick + " does not answer")) << made->passed_over[0];
  });
  EXPECT_EQ(others.wait_for(std::chrono::seconds(60)), std::future_status::ready);
  returns.set_value();
  waits.join();
  others.wait();
  EXPECT_TRUE(directories.set_aside(sick + "/shop_data_2")) << "it answers again";
}

TEST_F(DirectoriesTest, what_is_staged_waits_for_its_turn_however_long) {
  const std::string path = directory + "/shop_data_1";
  fs::create_directories(path);
  std::latch answers(1);
  std::counting_semaphore<2> on_it(0);
  auto slow = [&](const std::string&) { return on_it.release(), answers.wait(), false; };
  DiskDirectories directories({directory}, slow, expected(), {}, std::chrono::seconds(2));
  ASSERT_TRUE(directories.stage(path, Bytes(4096)));
  std::ofstream(directory + "/.staged_shop_data_1/new") << "n";
  auto make = [&](const char* uid) { (void)directories.make({"shop", "data"}, uid, Bytes(4096)); };
  std::vector<std::future<void>> makes;
  for (const char* uid : {"2", "3"}) makes.push_back(std::async(std::launch::async, make, uid));
  for (size_t i = 0; i < makes.size(); ++i) EXPECT_TRUE(on_it.try_acquire_for(std::chrono::seconds(60)));
  EXPECT_EQ(directories.publish(path).error().code(), Code::unavailable) << "after its patience";
  auto put = std::async(std::launch::async, [&] { return directories.put_staged(path); });
  EXPECT_EQ(put.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  answers.count_down();
  EXPECT_TRUE(put.get());
  EXPECT_EQ(names(path), std::set<std::string>{"new"});
}

TEST_F(DirectoriesTest, a_disk_in_the_place_of_one_that_hangs_is_used) {
  with_mounts([&] {
    const std::string root = directory + "/disk", path = root + "/shop_data_1";
    fs::create_directories(root);
    auto mount_disk = [&] {
      ASSERT_EQ(::mount("none", root.c_str(), "tmpfs", 0, nullptr), 0);
      for (const std::string& each : {path, root + "/.new_shop_data_2"}) fs::create_directories(each);
    };
    mount_disk();
    Quotas quotas;
    std::latch answers(1);
    std::counting_semaphore<2> on_it(0);
    std::atomic<bool> hangs = true;
    auto hang = [&] {
      if (hangs) on_it.release(), answers.wait();
    };
    ProjectCalls calls = quotas.calls();
    calls.project_of = [&, project_of = calls.project_of](const Fd& which) { return hang(), project_of(which); };
    DiskDirectories directories({root}, no_volumes, expected(), calls, std::chrono::nanoseconds(0));
    std::thread sets([&] { (void)directories.set_size(path, Bytes(4096)); });
    std::thread clears([&] { (void)clear(directories, [&](const auto&) { return hang(), true; }); });
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(on_it.try_acquire_for(std::chrono::seconds(60)));
    hangs = false;
    EXPECT_EQ(directories.set_size(path, Bytes(4096)).error().code(), Code::unavailable);
    EXPECT_EQ(::umount2(root.c_str(), MNT_DETACH), 0);
    mount_disk();
    EXPECT_TRUE(directories.set_size(path, Bytes(4096)));
    EXPECT_TRUE(directories.stage(path, Bytes(4096)));
    EXPECT_TRUE(directories.put_staged(path));
    EXPECT_TRUE(clear(directories, [](const auto&) { return false; }));
    EXPECT_EQ(names(root), std::set<std::string>{"shop_data_1"});
    answers.count_down();
    sets.join(), clears.join();
  });
}

TEST_F(DirectoriesTest, a_root_that_hangs_does_not_keep_the_others_from_being_cleared) {
  const std::string sick = directory + "/sick", well = directory + "/well";
  for (const std::string& each : {sick + "/.new_shop_data_1", well + "/.removed_shop_data_2"}) fs::create_directories(each);
  DiskDirectories directories({sick, well}, no_volumes, expected());
  std::promise<void> hangs, returns;
  std::once_flag is_first;
  std::thread first([&] {
    auto waits = [&](const auto&) {
      std::call_once(is_first, [&] { hangs.set_value(), returns.get_future().wait(); });
      return true;
    };
    (void)clear(directories, waits);
  });
  hangs.get_future().wait();
  EXPECT_TRUE(clear(directories, [](const auto&) { return true; }));
  EXPECT_EQ(names(well), std::set<std::string>{});
  returns.set_value();
  first.join();
}

TEST_F(DirectoriesTest, says_where_there_is_something_to_clear) {
  const std::string root = directory + "/volumes";
  DiskDirectories directories({root}, no_volumes, expected());
  EXPECT_FALSE(directories.needs_clearing(root)) << "nothing was made yet";
  EXPECT_FALSE(fs::exists(root));
  std::ofstream(fstab()) << "/dev/sdb1 " << root << " ext4\n";
  EXPECT_TRUE(directories.needs_clearing(root)) << "its disk is not mounted";
  fs::remove(fstab());
  ASSERT_TRUE(directories.publish(MUST(directories.make({"shop", "data"}, "1", Bytes(1))).path));
  EXPECT_FALSE(directories.needs_clearing(root)) << "a volume stays";
  for (const char* left : {".removed_shop_b_1", ".new_shop_b_1", ".staged_shop_b_1"}) {
    fs::create_directories(root + "/" + left);
    EXPECT_TRUE(directories.needs_clearing(root)) << left;
    ASSERT_TRUE(clear(directories, [](const auto&) { return false; }));
    EXPECT_FALSE(directories.needs_clearing(root)) << left;
  }
}

TEST_F(DirectoriesTest, a_link_is_no_volume) {
  fs::create_directories(directory + "/host");
  std::ofstream(directory + "/host/file") << "the host's";
  fs::create_directories(directory + "/volumes");
  fs::create_directory_symlink(directory + "/host", directory + "/volumes/shop_data_1");
  DiskDirectories directories({directory + "/volumes"}, no_volumes, expected());
  EXPECT_FALSE(directories.make({"shop", "data"}, "1", Bytes(1)));
  ASSERT_TRUE(directories.set_aside(directory + "/volumes/shop_data_1"));
  (void)clear(directories, [](const auto&) { return false; });
  EXPECT_TRUE(fs::exists(directory + "/host/file"));
}

TEST_F(DirectoriesTest, staged_content_takes_the_volumes_place_at_once) {
  DiskDirectories directories({directory}, no_volumes, expected());
  auto waits = [](const std::string&) { return true; };
  std::string path = MUST(directories.make({"shop", "data"}, "1", Bytes(1 << 20))).path;
  ASSERT_TRUE(directories.publish(path));
  std::ofstream(path + "/old") << "o";
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(directories.stage(path, Bytes(1 << 20)));
    std::ofstream(directory + "/.staged_shop_data_1/new") << i;
    ASSERT_TRUE(clear(directories, waits)) << "not what is being staged";
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
  ASSERT_TRUE(clear(directories, waits));
  EXPECT_EQ(names(directory), std::set<std::string>{});
}

TEST_F(DirectoriesTest, what_is_unstaged_while_clear_runs_goes_too) {
  DiskDirectories directories({directory}, no_volumes, expected());
  std::string path = MUST(directories.make({"shop", "data"}, "1", Bytes(1 << 20))).path;
  bool is_first = true;
  auto waits = [&](const std::string&) {  // called after the entries are listed
    if (std::exchange(is_first, false)) {
      EXPECT_TRUE(directories.stage(path, Bytes(1 << 20)));
      EXPECT_TRUE(directories.unstage(path));
    }
    return true;
  };
  ASSERT_TRUE(clear(directories, waits));
  EXPECT_FALSE(is_first);
  EXPECT_EQ(names(directory), std::set<std::string>{".new_shop_data_1"});
}

TEST_F(DirectoriesTest, what_could_not_be_unstaged_goes_when_all_is_cleared) {
  const std::string root = directory + "/volumes";
  DiskDirectories directories({root}, no_volumes, expected());
  std::string path = MUST(directories.make({"shop", "data"}, "1", Bytes(1 << 20))).path;
  ASSERT_TRUE(directories.publish(path));
  ASSERT_TRUE(directories.stage(path, Bytes(1 << 20)));
  fs::rename(root, directory + "/away");
  EXPECT_FALSE(directories.put_staged(path));
  EXPECT_FALSE(directories.unstage(path));
  fs::rename(directory + "/away", root);
  ASSERT_TRUE(clear(directories, [](const std::string&) { return true; }));
  EXPECT_EQ(names(root), std::set<std::string>{"shop_data_1"});
}

TEST_F(DirectoriesTest, what_was_staged_by_another_daemon_goes) {
  std::string path;
  {
    DiskDirectories before({directory}, no_volumes, expected());
    path = MUST(before.make({"shop", "data"}, "1", Bytes(1 << 20))).path;
    ASSERT_TRUE(before.publish(path));
    ASSERT_TRUE(before.stage(path, Bytes(1 << 20)));
  }
  DiskDirectories directories({directory}, no_volumes, expected());
  ASSERT_TRUE(clear(directories, [](const std::string&) { return true; }));
  EXPECT_EQ(names(directory), std::set<std::string>{"shop_data_1"});
  EXPECT_EQ(directories.stage(directory + "/elsewhere/x", Bytes(1)).error().code(), Code::invalid);
}

}  // namespace
}  // namespace coracle::volume

// SPDX-License-Identifier: Apache-2.0
// The tree of cgroups, on plain files that imitate one: which controllers are enabled where, and where the tree is placed. The
// live tests and the virtual machine, which has every controller, cover the kernel's behaviour.
#include "runtime/cgroup/pods.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/sys/file.h"

namespace coracle::cgroup {
namespace {

class CgroupTree : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/coracle-cgroup-XXXXXX";
    root_ = ::mkdtemp(name);
    look_like_cgroup(root_);
    auto opened = Cgroups::open(root_);
    if (!opened && opened.error().code() == Code::unsupported) GTEST_SKIP() << opened.error().text();
    ASSERT_TRUE(opened) << opened.error().text();
    // A real kernel would have applied the request here.
    EXPECT_EQ(read("cgroup.subtree_control"), "+memory +pids");
    write(root_ + "/cgroup.subtree_control", "memory pids");
  }
  void TearDown() override { (void)sys::remove_tree(root_); }

  void look_like_cgroup(const std::string& path) {
    ASSERT_TRUE(sys::make_directories(path));
    write(path + "/cgroup.controllers", "memory pids hugetlb\n");
    for (const char* name : {"/cgroup.subtree_control", "/cgroup.procs"}) write(path + name, "");
  }
  void write(const std::string& path, std::string_view text) {
    Fd dir = *sys::open_directory(path.substr(0, path.rfind('/')));
    ASSERT_TRUE(sys::replace_file_at(dir, path.substr(path.rfind('/') + 1), text, 0644, sys::Durability::volatile_));
  }
  std::string read(const std::string& path) { return sys::read_file(root_ + "/" + path).value_or("(none)"); }

  std::string root_;
};

TEST_F(CgroupTree, switches_controllers_on_where_another_made_the_directory_first) {
  Cgroups cgroups = *Cgroups::open(root_);
  look_like_cgroup(root_ + "/burstable");  // created by another thread, or by a daemon that was killed then
  ASSERT_TRUE(cgroups.make("burstable/pod", true));
  EXPECT_EQ(read("burstable/cgroup.subtree_control"), "+memory +pids");
}

TEST_F(CgroupTree, leaves_the_leaf_and_what_is_on_already_alone) {
  Cgroups cgroups = *Cgroups::open(root_);
  look_like_cgroup(root_ + "/pod");
  look_like_cgroup(root_ + "/pod/c");
  write(root_ + "/pod/cgroup.subtree_control", "memory pids");
  ASSERT_TRUE(cgroups.make("pod/c", false));
  EXPECT_EQ(read("pod/cgroup.subtree_control"), "memory pids");
  EXPECT_EQ(read("pod/c/cgroup.subtree_control"), "");  // the cgroup has processes
}

TEST_F(CgroupTree, bounds_the_memory_of_all_pods_where_nobody_has) {
  write(root_ + "/memory.max", "max\n");
  Cgroups cgroups = *Cgroups::open(root_);
  const int64_t physical = int64_t(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE);
  ASSERT_TRUE(cgroups.memory_bound());
  EXPECT_LT(cgroups.memory_bound()->count, physical / 100 * 81);
  EXPECT_GT(cgroups.memory_bound()->count, physical / 100 * 79);
}

TEST_F(CgroupTree, leaves_a_bound_that_somebody_has_set) {
  write(root_ + "/memory.max", "104857600\n");
  Cgroups cgroups = *Cgroups::open(root_);
  EXPECT_EQ(cgroups.memory_bound(), 100_MiB);
  write(root_ + "/memory.max", "209715200\n");
  EXPECT_EQ(cgroups.memory_bound(), 200_MiB);  // the current value
  write(root_ + "/memory.max", "max\n");
  EXPECT_EQ(cgroups.memory_bound(), std::nullopt);
}

TEST_F(CgroupTree, is_bound_by_what_stands_above_it) {
  write(root_ + "/memory.max", "104857600\n");
  look_like_cgroup(root_ + "/pods");
  write(root_ + "/pods/memory.max", "209715200\n");
  EXPECT_EQ(Cgroups::open(root_ + "/pods")->memory_bound(), 100_MiB);
}

TEST_F(CgroupTree, knows_no_bound_where_memory_is_not_counted) { EXPECT_EQ(Cgroups::open(root_)->memory_bound(), std::nullopt); }

TEST_F(CgroupTree, says_what_it_can_hold) {
  Cgroups cgroups = *Cgroups::open(root_);
  EXPECT_TRUE(cgroups.enforcement().memory);
  EXPECT_TRUE(cgroups.enforcement().pids);
  EXPECT_FALSE(cgroups.enforcement().cpu);
  EXPECT_EQ(cgroups.enforcement().missing.substr(0, 43), "limits of cpu, io, cpuset are not enforced:");
}

TEST_F(CgroupTree, is_put_where_it_is_told_to_be) {
  EXPECT_EQ(Cgroups::open(root_, "system.slice/anything.service")->path(), root_);
}

}  // namespace
}  // namespace coracle::cgroup

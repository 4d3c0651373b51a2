// SPDX-License-Identifier: Apache-2.0
// The cgroup v1 hierarchies of a machine, and the limits written to them.
#include "runtime/cgroup/v1.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "runtime/sys/file.h"
#include "tests/runtime/expect.h"

namespace coracle::cgroup {
namespace {

TEST(V1, finds_the_hierarchies_that_hold_controllers) {
  const char* hybrid =
      "24 23 0:22 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"
      "25 23 0:23 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,xattr,name=systemd\n"
      "26 23 0:24 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:5 - cgroup cgroup rw,cpu,cpuacct\n"
      "27 23 0:25 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
      "28 90 0:25 / /srv/again/memory rw,relatime - cgroup cgroup rw,memory\n"
      "29 23 0:26 / /sys/fs/cgroup/freezer rw,relatime - cgroup cgroup rw,freezer\n";
  EXPECT_EQ(v1_hierarchies_in(hybrid), (std::vector<V1Hierarchy>{{"/sys/fs/cgroup/cpu,cpuacct", {"cpu", "cpuacct"}},
                                                                 {"/sys/fs/cgroup/memory", {"memory"}}}));
  EXPECT_TRUE(v1_hierarchies_in("24 23 0:22 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n").empty());
}

TEST(V1, holds_a_controller_where_its_hierarchy_is_mounted) {
  const std::vector<V1Hierarchy> mounted = {{"/sys/fs/cgroup/cpu,cpuacct", {"cpu", "cpuacct"}},
                                            {"/sys/fs/cgroup/blkio", {"blkio"}}};
  EXPECT_EQ(held_and_mounted({"cpu", "memory", "io"}, mounted), (std::vector<std::string>{"cpu", "io"}));
  EXPECT_TRUE(held_and_mounted({"cpu"}, {}).empty());
}

std::string text_of(const std::vector<V1Setting>& settings) {
  std::string out;
  for (const V1Setting& each : settings) out += each.file + "=" + each.value + (each.may_be_absent ? "?" : "") + " ";
  return out;
}

TEST(V1, takes_the_limits_of_controllers_that_it_holds) {
  oci::Resources in;
  in.memory_limit_bytes = 100;
  in.memory_swap_bytes = 200;
  in.memory_swappiness = 10;
  in.cpu_shares = 512;
  in.cpu_quota_us = -1;
  in.pids_limit = 7;
  in.cpuset_cpus = "0-1";
  in.block_io.weight = 500;
  in.block_io.read_bps = {{8, 0, 1024}};
  V1Limits some = v1_limits(in, {"memory", "pids"});
  EXPECT_EQ(text_of(some.settings), "memory.memsw.limit_in_bytes=200 memory.limit_in_bytes=100 memory.swappiness=10 pids.max=7 ");
  EXPECT_FALSE(some.rest.memory_limit_bytes || some.rest.memory_swap_bytes || some.rest.pids_limit);
  EXPECT_EQ(some.rest.cpu_shares, 512u);
  EXPECT_EQ(some.settings[3].field, "linux.resources.pids.limit");
  V1Limits others = v1_limits(in, {"cpu", "cpuset", "io"});
  EXPECT_EQ(text_of(others.settings),
            "cpu.shares=512 cpu.cfs_quota_us=-1 cpuset.cpus=0-1 blkio.bfq.weight=500 blkio.throttle.read_bps_device=8:0 1024 ");
  EXPECT_EQ(others.settings[3].other_file, "blkio.weight");
  EXPECT_TRUE(others.rest.cpuset_cpus.empty() && others.rest.block_io.read_bps.empty());
  EXPECT_EQ(others.rest.memory_limit_bytes, 100);
  EXPECT_TRUE(v1_limits(in, {}).settings.empty());
}

TEST(V1, what_is_not_set_is_not_written) {
  oci::Resources in;  // as engines write it when no limit is requested
  in.memory_limit_bytes = 0;
  in.memory_swappiness = ~uint64_t(0);
  in.memory_disable_oom_killer = false;
  in.cpu_shares = 0;
  in.pids_limit = -1;
  EXPECT_EQ(text_of(v1_limits(in, {"memory", "cpu", "pids"}).settings), "pids.max=max ");
  in.memory_limit_bytes = in.memory_swap_bytes = 100;
  EXPECT_EQ(text_of(v1_limits(in, {"memory"}).settings), "memory.memsw.limit_in_bytes=100? memory.limit_in_bytes=100 ");
}

TEST(V1, without_a_limit_of_memory_there_is_none_with_swap) {
  oci::Resources in;
  in.memory_limit_bytes = -1;
  EXPECT_EQ(text_of(v1_limits(in, {"memory"}).settings), "memory.memsw.limit_in_bytes=-1? memory.limit_in_bytes=-1 ");
  in.memory_swap_bytes = 100;
  EXPECT_EQ(text_of(v1_limits(in, {"memory"}).settings), "memory.memsw.limit_in_bytes=100 memory.limit_in_bytes=-1 ");
}

TEST(V1, what_no_kernel_has_any_more_stays_to_be_refused) {
  oci::Resources in;
  in.block_io.leaf_weight = 100;
  in.block_io.weight_devices = {{8, 0, 200, 300}};
  V1Limits limits = v1_limits(in, {"io"});
  EXPECT_EQ(text_of(limits.settings), "blkio.bfq.weight_device=8:0 200 ");
  EXPECT_EQ(limits.rest.block_io.leaf_weight, 100);
  ASSERT_EQ(limits.rest.block_io.weight_devices.size(), 1u);
  EXPECT_FALSE(limits.rest.block_io.weight_devices[0].weight);
  EXPECT_EQ(limits.rest.block_io.weight_devices[0].leaf_weight, 300);
}

// Files that a new cgroup of the kernel's has, and an ordinary directory has not.
TEST(V1, a_set_is_that_of_the_cgroup_above_or_an_error) {
  char name[] = "/tmp/coracle-v1-XXXXXX";
  const std::string top = ::mkdtemp(name);
  auto write = [&](const std::string& file, std::string_view text) {
    Fd fd = std::move(*sys::open(top + file, O_WRONLY | O_CREAT | O_TRUNC, 0644));
    ASSERT_OK(sys::write_all(fd, text));
  };
  for (const char* each : {"/a", "/own", "/b"}) {
    ASSERT_OK(sys::make_directories(top + each, 0755));
    write(std::string(each) + "/cpuset.cpus", "\n");
    write(std::string(each) + "/cpuset.mems", "\n");
  }
  write("/cpuset.cpus", "0-3\n");
  write("/cpuset.mems", "0\n");
  write("/own/cpuset.cpus", "2\n");
  const std::vector<V1Hierarchy> all = {{top, {"cpuset"}}};
  for (const char* each : {"/a", "/own"}) ASSERT_OK(V1Cgroup::make(all, each));
  EXPECT_EQ(*sys::read_file(top + "/a/cpuset.cpus"), "0-3");
  EXPECT_EQ(*sys::read_file(top + "/a/cpuset.mems"), "0");
  EXPECT_EQ(*sys::read_file(top + "/own/cpuset.cpus"), "2\n");
  std::filesystem::remove(top + "/cpuset.mems");
  auto made = V1Cgroup::make(all, "/b");
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().text().find("cpuset.mems"), std::string::npos) << made.error().text();
  ASSERT_TRUE(sys::remove_tree(top));
}

TEST(V1, opens_the_tasks_of_cgroups_inside) {
  char name[] = "/tmp/coracle-v1-XXXXXX";
  const std::string top = ::mkdtemp(name);
  for (const char* each : {"/cpu,cpuacct/a", "/cpu,cpuacct/a/in", "/memory/a", "/memory/a/in/deep"}) {
    ASSERT_TRUE(sys::make_directories(top + each, 0755));
    ASSERT_TRUE(sys::open(top + each + "/tasks", O_WRONLY | O_CREAT, 0644));
  }
  const std::vector<V1Hierarchy> all = {
      {top + "/cpu,cpuacct", {"cpu", "cpuacct"}}, {top + "/memory", {"memory"}}, {top + "/pids", {"pids"}}};
  auto opened = [&](const SubCgroups& inside) {
    auto tasks = V1Cgroup::open_tasks(all, "/a", inside);
    if (!tasks) return tasks.error().text();
    std::string out;
    for (const Fd& each : *tasks)
      out += std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(each.get())).string().substr(top.size()) + " ";
    return out;
  };
  EXPECT_EQ(opened({}), "/cpu,cpuacct/a/tasks /memory/a/tasks ");
  EXPECT_EQ(opened({"in", {}}), "/cpu,cpuacct/a/in/tasks /memory/a/tasks ");
  EXPECT_EQ(opened({"none", {}}), "/cpu,cpuacct/a/tasks /memory/a/tasks ");
  EXPECT_EQ(opened({"", {{"cpuacct", "in"}, {"memory", "in/deep"}}}), "/cpu,cpuacct/a/in/tasks /memory/a/in/deep/tasks ");
  EXPECT_TRUE(opened({"", {{"memory", "none"}}}).starts_with("cgroup " + top + "/memory/a/none: "));
  EXPECT_EQ(opened({"", {{"memory", "in/deep"}, {"devices", "in"}}}), "unknown controller \"devices\"");
  ASSERT_TRUE(sys::remove_tree(top));
}

}  // namespace
}  // namespace coracle::cgroup

// SPDX-License-Identifier: Apache-2.0
// Resources of config.json as settings of cgroup v2 files: one row for each field, including those that v2 does not support.
#include "runtime/cgroup/settings.h"

#include <gtest/gtest.h>

#include <functional>

namespace coracle::cgroup {
namespace {

using Fill = std::function<void(oci::Resources&)>;

// Words "file=value", with the fallback for an absent file and whether it may be absent: "a=1|b=2", "a=1?".
std::string settings_text(const Result<std::vector<Setting>>& result) {
  if (!result) return "error: " + result.error().text();
  std::string out;
  for (const Setting& each : *result) {
    out += (out.empty() ? "" : "; ") + each.file + "=" + each.value + (each.may_be_absent ? "?" : "");
    if (!each.other_file.empty()) out += "|" + each.other_file + "=" + each.other_value;
  }
  return out;
}

struct Row {
  const char* name;
  Fill fill;
  const char* want;
};
void check(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    oci::Resources in;
    row.fill(in);
    EXPECT_EQ(settings_text(settings(in)), row.want) << row.name;
  }
}
#define R(...) [](oci::Resources& r) { __VA_ARGS__; }

TEST(Settings, of_nothing_are_none) { check({{"empty", R((void)r), ""}}); }

TEST(Settings, of_memory) {
  check({
      {"limit", R(r.memory_limit_bytes = 100), "memory.max=100"},
      {"zero is not set", R(r.memory_limit_bytes = 0; r.memory_swap_bytes = 0; r.memory_reservation_bytes = 0), ""},
      {"unlimited, and swap with it", R(r.memory_limit_bytes = -1), "memory.swap.max=max?; memory.max=max"},
      {"swap counts both", R(r.memory_limit_bytes = 100; r.memory_swap_bytes = 150), "memory.swap.max=50; memory.max=100"},
      {"no swap", R(r.memory_limit_bytes = 100; r.memory_swap_bytes = 100), "memory.swap.max=0?; memory.max=100"},
      {"any swap", R(r.memory_limit_bytes = 100; r.memory_swap_bytes = -1), "memory.swap.max=max?; memory.max=100"},
      {"any swap alone", R(r.memory_swap_bytes = -1), "memory.swap.max=max?"},
      {"swap of unlimited memory", R(r.memory_limit_bytes = -1; r.memory_swap_bytes = 5), "memory.swap.max=5; memory.max=max"},
      {"reservation", R(r.memory_reservation_bytes = 50), "memory.low=50"},
      {"unlimited reservation", R(r.memory_reservation_bytes = -1), "memory.low=max"},
      {"swap without limit", R(r.memory_swap_bytes = 10), "error: linux.resources.memory.swap: is set without memory.limit"},
      {"swap below limit", R(r.memory_limit_bytes = 20; r.memory_swap_bytes = 10),
       "error: linux.resources.memory.swap: is below memory.limit; it counts memory and swap together"},
      {"negative", R(r.memory_limit_bytes = -2), "error: linux.resources.memory.limit: is -2; -1 is unlimited, less is nothing"},
  });
}

TEST(Settings, of_what_v2_cannot_do) {
  check({
      {"kernel", R(r.memory_kernel_bytes = 1), "error: linux.resources.memory.kernel: cgroup v2 has no such setting"},
      {"kernelTCP", R(r.memory_kernel_tcp_bytes = 1), "error: linux.resources.memory.kernelTCP: cgroup v2 has no such setting"},
      {"kernel, unlimited", R(r.memory_kernel_bytes = -1; r.memory_kernel_tcp_bytes = 0), ""},
      {"swappiness", R(r.memory_swappiness = 0), "error: linux.resources.memory.swappiness: cgroup v2 has no such setting"},
      {"swappiness, the kernel's own", R(r.memory_swappiness = 60), ""},
      {"swappiness, not set by docker", R(r.memory_swappiness = uint64_t(-1)), ""},
      {"disableOOMKiller", R(r.memory_disable_oom_killer = true),
       "error: linux.resources.memory.disableOOMKiller: cgroup v2 has no such setting"},
      {"disableOOMKiller, off", R(r.memory_disable_oom_killer = false), ""},
      {"useHierarchy, off", R(r.memory_use_hierarchy = false),
       "error: linux.resources.memory.useHierarchy: cgroup v2 is always hierarchical"},
      {"useHierarchy", R(r.memory_use_hierarchy = true), ""},
      {"realtimeRuntime", R(r.cpu_realtime_runtime_us = 1),
       "error: linux.resources.cpu.realtimeRuntime: cgroup v2 has no such setting"},
      {"realtimePeriod", R(r.cpu_realtime_period_us = 1),
       "error: linux.resources.cpu.realtimePeriod: cgroup v2 has no such setting"},
      {"realtime, not set", R(r.cpu_realtime_runtime_us = 0; r.cpu_realtime_period_us = 0), ""},
      {"leafWeight", R(r.block_io.leaf_weight = 10), "error: linux.resources.blockIO.leafWeight: cgroup v2 has no such setting"},
      {"leafWeight of a device", R(r.block_io.weight_devices = {{8, 0, 10, 10}}),
       "error: linux.resources.blockIO.weightDevice.leafWeight: cgroup v2 has no such setting"},
      {"classID", R(r.network_class_id = 1), "error: linux.resources.network.classID: cgroup v2 has no such setting"},
      {"classID, not set", R(r.network_class_id = 0), ""},
      {"priorities", R(r.network_priorities["eth0"] = 1),
       "error: linux.resources.network.priorities: cgroup v2 has no such setting"},
  });
}

TEST(Settings, of_cpu) {
  check({
      {"shares", R(r.cpu_shares = 1024), "cpu.weight=100"},
      {"shares, not set", R(r.cpu_shares = 0), ""},
      {"quota", R(r.cpu_quota_us = 50000), "cpu.max=50000 100000"},
      {"quota and period", R(r.cpu_quota_us = 50000; r.cpu_period_us = 20000), "cpu.max=50000 20000"},
      {"period", R(r.cpu_period_us = 20000), "cpu.max=max 20000"},
      {"unlimited", R(r.cpu_quota_us = -1; r.cpu_period_us = 20000), "cpu.max=max 20000"},
      {"not set", R(r.cpu_quota_us = 0; r.cpu_period_us = 0), ""},
      {"burst", R(r.cpu_quota_us = 50000; r.cpu_burst_us = 1000), "cpu.max=50000 100000; cpu.max.burst=1000"},
      {"no burst", R(r.cpu_burst_us = 0), "cpu.max.burst=0?"},
      {"burst over quota", R(r.cpu_quota_us = 100; r.cpu_burst_us = 200),
       "error: linux.resources.cpu.burst: is larger than cpu.quota"},
      {"idle", R(r.cpu_idle = 1), "cpu.idle=1"},
      {"idle no more, before its weight", R(r.cpu_idle = 0; r.cpu_shares = 2), "cpu.idle=0?; cpu.weight=1"},
      {"idle with shares", R(r.cpu_idle = 1; r.cpu_shares = 2),
       "error: linux.resources.cpu.shares: an idle group (cpu.idle) has none"},
      {"idle of another kind", R(r.cpu_idle = 2), "error: linux.resources.cpu.idle: is 0 or 1"},
      {"cpuset", R(r.cpuset_cpus = "0-1"; r.cpuset_mems = "0"), "cpuset.cpus=0-1; cpuset.mems=0"},
  });
}

TEST(Settings, of_pids) {
  check({
      {"limit", R(r.pids_limit = 64), "pids.max=64"},
      {"none at all", R(r.pids_limit = 0), "pids.max=1"},
      {"unlimited", R(r.pids_limit = -1), "pids.max=max"},
      {"less", R(r.pids_limit = -5), "error: linux.resources.pids.limit: is -5; -1 is unlimited, less is nothing"},
  });
}

TEST(Settings, of_pids_mean_what_their_version_says) {
  for (auto [version, want] : {std::pair("", "pids.max=max"),
                               {"1.0.2-dev", "pids.max=max"},
                               {"1.2.1", "pids.max=max"},
                               {"1.3.0", "pids.max=1"},
                               {"1.10.0", "pids.max=1"},
                               {"2.0.0", "pids.max=1"}}) {
    oci::Resources in;
    in.pids_limit = 0;
    EXPECT_EQ(settings_text(settings(of_version(in, version))), want) << version;
    in.pids_limit = 7;
    EXPECT_EQ(settings_text(settings(of_version(in, version))), "pids.max=7") << version;
  }
}

TEST(Settings, of_block_io) {
  check({
      {"weight", R(r.block_io.weight = 10), "io.bfq.weight=10|io.weight=1"},
      {"the largest", R(r.block_io.weight = 1000), "io.bfq.weight=1000|io.weight=10000"},
      {"not set", R(r.block_io.weight = 0), ""},
      {"too small", R(r.block_io.weight = 9), "error: linux.resources.blockIO.weight: is 9, not of 10 to 1000"},
      {"too large", R(r.block_io.weight = 1001), "error: linux.resources.blockIO.weight: is 1001, not of 10 to 1000"},
      {"of a device", R(r.block_io.weight_devices = {{8, 16, 500}}), "io.bfq.weight=8:16 500|io.weight=8:16 4950"},
      {"rates",
       R(r.block_io.read_bps = {{8, 0, 1}}; r.block_io.write_bps = {{8, 0, 2}}; r.block_io.read_iops = {{8, 0, 3}};
         r.block_io.write_iops = {{8, 0, 4}, {8, 1, 0}}),
       "io.max=8:0 rbps=1; io.max=8:0 wbps=2; io.max=8:0 riops=3; io.max=8:0 wiops=4; io.max=8:1 wiops=max"},
  });
}

TEST(Settings, of_huge_pages_and_rdma) {
  check({
      {"2MB", R(r.hugepage_limits = {{"2MB", 100}}), "hugetlb.2MB.rsvd.max=100?; hugetlb.2MB.max=100"},
      {"no size", R(r.hugepage_limits = {{"../2MB", 100}}),
       "error: linux.resources.hugepageLimits.pageSize: \"../2MB\" is no size like 2MB"},
      {"no unit", R(r.hugepage_limits = {{"2", 100}}),
       "error: linux.resources.hugepageLimits.pageSize: \"2\" is no size like 2MB"},
      {"rdma", R(r.rdma["mlx5_1"] = {3, 10000}; r.rdma["rxe3"].hca_objects = 7),
       "rdma.max=mlx5_1 hca_handle=3 hca_object=10000; rdma.max=rxe3 hca_object=7"},
      {"rdma of nothing", R(r.rdma["mlx5_1"] = {}),
       "error: linux.resources.rdma.mlx5_1: names neither hcaHandles nor hcaObjects"},
  });
}

TEST(Settings, unified_wins) {
  check({
      {"as it is", R(r.unified = {{"memory.high", "5"}, {"misc.max", "res_a 1"}}), "memory.high=5; misc.max=res_a 1"},
      {"over what was converted", R(r.memory_limit_bytes = 1; r.pids_limit = 2; r.unified = {{"memory.max", "9"}}),
       "pids.max=2; memory.max=9"},
      {"over either of two files", R(r.block_io.weight = 10; r.unified = {{"io.weight", "7"}}), "io.weight=7"},
      {"a line at a time", R(r.unified = {{"io.max", "8:0 rbps=1\n8:1 rbps=2\n"}}), "io.max=8:0 rbps=1; io.max=8:1 rbps=2"},
      {"empty takes back", R(r.unified = {{"cpuset.cpus", ""}}), "cpuset.cpus="},
      {"no path", R(r.unified = {{"../memory.max", "1"}}),
       "error: linux.resources.unified: \"../memory.max\" is not of the form CONTROLLER.PARAMETER"},
      {"no controller", R(r.unified = {{"memory", "1"}}),
       "error: linux.resources.unified: \"memory\" is not of the form CONTROLLER.PARAMETER"},
      {"no kill", R(r.unified = {{"cgroup.kill", "1"}}), "error: linux.resources.unified: \"cgroup.kill\" is no limit"},
      {"a depth", R(r.unified = {{"cgroup.max.depth", "1"}}), "cgroup.max.depth=1"},
  });
}

TEST(Settings, name_their_fields) {
  oci::Resources in;
  in.memory_limit_bytes = 1;
  in.unified = {{"io.max", "8:0 rbps=1"}};
  auto got = *settings(in);
  EXPECT_EQ(got[0].field, "linux.resources.memory.limit");
  EXPECT_EQ(got[1].field, "linux.resources.unified.io.max");
}

#undef R

}  // namespace
}  // namespace coracle::cgroup

// SPDX-License-Identifier: Apache-2.0
// Statistics, on plain files that imitate a cgroup's: with every controller, and with none. The JSON is runc's.
#include "runtime/cgroup/stats.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include "runtime/sys/file.h"

namespace coracle::cgroup {
namespace {

class CgroupStats : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/coracle-stats-XXXXXX";
    path_ = ::mkdtemp(name);
    directory_ = *sys::open_directory(path_);
    write("cpu.stat", "usage_usec 30\nuser_usec 20\nsystem_usec 10\nnr_periods 5\nnr_throttled 2\nthrottled_usec 7\n");
  }
  void TearDown() override { (void)sys::remove_tree(path_); }
  void write(const char* file, std::string_view text) {
    ASSERT_TRUE(sys::replace_file_at(directory_, file, text, 0644, sys::Durability::volatile_));
  }
  std::string path_;
  Fd directory_;
};

TEST_F(CgroupStats, of_every_controller) {
  write("memory.current", "100\n");
  write("memory.max", "200\n");
  write("memory.peak", "150\n");
  write("memory.swap.current", "10\n");
  write("memory.swap.max", "max\n");
  write("memory.stat", "anon 60\nfile 40\n");
  write("memory.events", "low 0\nmax 3\noom 2\noom_kill 1\n");
  write("memory.pressure", "some avg10=1.50 avg60=0.25 avg300=0.00 total=99\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=9\n");
  write("pids.current", "4\n");
  write("pids.max", "64\n");
  write("io.stat", "8:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=5 dios=6\n254:16 \n");
  write("hugetlb.2MB.current", "5\n");
  write("hugetlb.2MB.max", "6\n");
  write("hugetlb.2MB.events", "max 7\n");
  write("hugetlb.1GB.current", "0\n");
  write("hugetlb.1GB.rsvd.current", "8\n");
  write("hugetlb.1GB.rsvd.max", "max\n");
  write("rdma.current", "mlx4_0 hca_handle=2 hca_object=3\n");
  write("rdma.max", "mlx4_0 hca_handle=9 hca_object=max\n");
  write("misc.current", "res_a 3\n");
  write("misc.max", "res_a max\n");
  write("misc.events", "res_a.max 1\n");
  write("cpuset.cpus.effective", "0-1,4\n");
  write("cpuset.mems.effective", "0\n");
  auto got = *read_stats(directory_);
  EXPECT_EQ(got.memory.oom_kills, 1u);
  EXPECT_EQ(got.rdma_limit.hca_objects["mlx4_0"], kUnlimited);
  EXPECT_EQ(got.misc["res_a"].failures, 1u);
  EXPECT_EQ(
      to_pretty(json::value(to_json(got)), 1),
      to_pretty(
          *parse_json(
              R"({"cpu":{"usage":{"total":30000,"kernel":10000,"user":20000},"throttling":{"periods":5,"throttledPeriods":2,"throttledTime":7000}},
"cpuset":{"cpus":[0,1,4],"mems":[0]},
"memory":{"cache":40,"usage":{"limit":200,"usage":100,"max":150,"failcnt":3},"swap":{"limit":18446744073709551615,"usage":110,"max":0,"failcnt":0},
"swapOnly":{"limit":18446744073709551615,"usage":10,"max":0,"failcnt":0},"raw":{"anon":60,"file":40},
"psi":{"some":{"avg10":1.5,"avg60":0.25,"avg300":0E0,"total":99},"full":{"avg10":0E0,"avg60":0E0,"avg300":0E0,"total":9}}},
"pids":{"current":4,"limit":64},
"blkio":{"ioServiceBytesRecursive":[{"major":8,"minor":0,"op":"Read","value":1},{"major":8,"minor":0,"op":"Write","value":2},{"major":8,"minor":0,"op":"Discard","value":5}],
"ioServicedRecursive":[{"major":8,"minor":0,"op":"Read","value":3},{"major":8,"minor":0,"op":"Write","value":4},{"major":8,"minor":0,"op":"Discard","value":6}]},
"hugetlb":{"1GB":{"usage":8,"max":0,"limit":18446744073709551615,"failcnt":0},"2MB":{"usage":5,"max":0,"limit":6,"failcnt":7}},
"rdma":{"current":{"mlx4_0":{"hcaHandles":2,"hcaObjects":3}},"limit":{"mlx4_0":{"hcaHandles":9,"hcaObjects":18446744073709551615}}},
"misc":{"res_a":{"usage":3,"max":0,"limit":18446744073709551615,"failcnt":1}}})"),
          1));
}

TEST_F(CgroupStats, without_controllers) {
  write("cgroup.procs", "1\n2\n");
  auto got = *read_stats(directory_);
  EXPECT_EQ(got.cpu.usage_ns, 30000u);
  EXPECT_EQ(got.pids, 2u);
  EXPECT_EQ(got.memory.memory.limit, 0u);
  EXPECT_FALSE(got.cpu.pressure);
  EXPECT_FALSE(to_json(got).contains("rdma"));
}

TEST_F(CgroupStats, of_one_that_is_gone) {
  ASSERT_TRUE(sys::unlink(path_ + "/cpu.stat"));
  EXPECT_EQ(read_stats(directory_).error().code(), Code::not_found);
}

}  // namespace
}  // namespace coracle::cgroup

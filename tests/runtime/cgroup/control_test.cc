// SPDX-License-Identifier: Apache-2.0
// Writing settings, and what happens to those that cannot be written, on plain files that imitate a cgroup. The live tests cover
// the kernel's reaction to values.
#include "runtime/cgroup/control.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include "runtime/sys/file.h"

namespace coracle::cgroup {
namespace {

class Control : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/coracle-control-XXXXXX";
    path_ = ::mkdtemp(name);
    directory_ = *sys::open_directory(path_);
  }
  void TearDown() override { (void)sys::remove_tree(path_); }
  void write(const std::string& file, std::string_view text) {
    ASSERT_TRUE(sys::replace_file_at(directory_, file, text, 0644, sys::Durability::volatile_));
  }
  std::string read(const std::string& file) { return sys::read_file(path_ + "/" + file).value_or("(none)"); }
  // The warnings or the error.
  std::string apply(const oci::Resources& resources, Unenforceable unenforceable = Unenforceable::refuse) {
    auto written = write_settings(directory_, *settings(resources), unenforceable);
    if (!written) return "error: " + written.error().text();
    std::string out;
    for (const std::string& each : *written) out += each + "\n";
    return out;
  }
  std::string path_;
  Fd directory_;
};

TEST_F(Control, writes_what_takes_the_place_of_an_absent_file) {
  write("cgroup.controllers", "io hugetlb memory\n");
  oci::Resources in;
  in.block_io.weight = 1000;
  EXPECT_EQ(apply(in), "error: linux.resources.blockIO.weight: this kernel has no io.bfq.weight");
  write("io.weight", "");
  EXPECT_EQ(apply(in), "");
  EXPECT_EQ(read("io.weight"), "10000");
  write("io.bfq.weight", "");
  write("io.weight", "");
  EXPECT_EQ(apply(in), "");
  EXPECT_EQ(read("io.bfq.weight"), "1000");
  EXPECT_EQ(read("io.weight"), "");
}

TEST_F(Control, does_without_files_that_change_nothing) {
  write("cgroup.controllers", "hugetlb memory\n");
  write("hugetlb.2MB.max", "");
  write("memory.max", "");
  oci::Resources in;
  in.hugepage_limits = {{"2MB", 5}};                   // no file for reservations
  in.memory_limit_bytes = in.memory_swap_bytes = 100;  // no swap limit needed, and no swap accounting
  in.pids_limit = -1;                                  // no limit, so no controller is needed
  EXPECT_EQ(apply(in), "");
  EXPECT_EQ(read("hugetlb.2MB.max"), "5");
  in.memory_swap_bytes = 150;
  EXPECT_EQ(apply(in), "error: linux.resources.memory.swap: this kernel has no memory.swap.max");
}

TEST_F(Control, refuses_or_tells_by_the_callers_choice) {
  write("cgroup.controllers", "memory\n");
  write("memory.max", "");
  oci::Resources in;
  in.rdma["mlx"].hca_handles = 1;
  in.memory_limit_bytes = 5;
  const std::string lack = "linux.resources.rdma.mlx: the controller rdma is not available in this cgroup";
  EXPECT_EQ(apply(in), "error: " + lack);
  EXPECT_EQ(apply(in, Unenforceable::warn_on_v1), "error: " + lack);  // cgroup v1 does not have it on any machine
  EXPECT_EQ(apply(in, Unenforceable::warn), lack + "; the limit is not enforced\n");
  EXPECT_EQ(read("memory.max"), "5");
}

TEST_F(Control, checks_memory_in_use_before_an_update) {
  oci::Resources in;
  in.memory_limit_bytes = 100;
  in.memory_check_before_update = true;
  EXPECT_TRUE(check_memory_use(directory_, in));  // there is no accounting
  write("memory.current", "100\n");
  EXPECT_EQ(check_memory_use(directory_, in).error().text(),
            "linux.resources.memory.limit: rejecting memory limit 100 <= usage 100");
  in.memory_check_before_update = false;
  EXPECT_TRUE(check_memory_use(directory_, in));
  in.memory_check_before_update = true;
  in.memory_limit_bytes = -1;
  EXPECT_TRUE(check_memory_use(directory_, in));
}

TEST_F(Control, of_a_cgroup_that_is_gone_is_not_found_or_done) {
  EXPECT_TRUE(kill(directory_));
  EXPECT_EQ(freeze(directory_, std::chrono::milliseconds(1)).error().code(), Code::not_found);
  EXPECT_EQ(oom_kills(directory_).error().code(), Code::not_found);
  EXPECT_TRUE(wait_empty(directory_, std::chrono::milliseconds(1)));
  EXPECT_TRUE(remove(directory_, "none"));
}

TEST_F(Control, a_kernel_that_cannot_kill_says_so) {
  write("cgroup.procs", "17\n");
  EXPECT_EQ(kill(directory_).error().code(), Code::not_found);
}

}  // namespace
}  // namespace coracle::cgroup

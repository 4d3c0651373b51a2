// SPDX-License-Identifier: Apache-2.0
// A container's own cgroup in the real hierarchy, below the test's own directory: created, joined, limited, frozen, killed,
// watched, removed. Limits are tested where cgroup v2 has the controllers, as in the virtual machine; scopes where systemd runs,
// that of the machine or (as another user) the user's own.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <thread>

#include "runtime/base/text.h"
#include "runtime/cgroup/container.h"
#include "runtime/cgroup/hierarchy.h"
#include "runtime/sys/file.h"
#include "runtime/sys/process.h"

namespace coracle::cgroup {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
constexpr seconds kTimeout{60};  // an emulated machine is slow

// A process that runs `work` when it is released, and is killed at the end of the test.
class Child {
 public:
  explicit Child(std::function<void()> work = [] { ::pause(); }) {
    auto gate = *sys::make_pipe();
    pid_ = ::fork();
    if (pid_ == 0) {
      char letter;
      gate.write.reset();
      (void)!::read(gate.read.get(), &letter, 1);
      work();
      ::_exit(0);
    }
    gate_ = std::move(gate.write);
  }
  ~Child() {
    ::kill(pid_, SIGKILL);
    (void)wait();
  }
  int pid() const { return pid_; }
  void let_go() { gate_.reset(); }
  int wait() {  // its exit status; call it once
    int status = -1;
    if (!is_buried_) ::waitpid(pid_, &status, 0);
    is_buried_ = true;
    return status;
  }

 private:
  int pid_ = 0;
  bool is_buried_ = false;
  Fd gate_;
};

class Live : public testing::Test {
 protected:
  void SetUp() override {
    auto caller = Caller::self();
    if (!caller) GTEST_SKIP() << caller.error().text();
    caller_ = *caller;
    top_ = "/coracle-test-" + std::to_string(::getpid());
    is_possible_ = caller_.is_privileged;
    if (!is_possible_ && needs_root_) GTEST_SKIP() << "needs root";
  }
  void TearDown() override {
    if (caller_.mount_point.empty() || !caller_.is_privileged) return;
    Fd mount = *sys::open_directory(caller_.mount_point);
    if (auto left = sys::open_at(mount, top_.substr(1), O_RDONLY | O_DIRECTORY)) {
      (void)kill(*left);
      (void)wait_empty(*left, kTimeout);
      EXPECT_TRUE(remove(mount, top_.substr(1)));
    }
    if (!caller_.held_by_v1.empty()) {
      EXPECT_TRUE(V1Cgroup::remove(*v1_hierarchies(), top_, top_));
    }
  }
  Wanted wanted(const std::string& name) const {
    Wanted out;
    out.id = "test";
    out.cgroups_path = top_ + "/" + name;
    return out;
  }
  bool has(const char* controller) const {
    Fd mount = *sys::open_directory(caller_.mount_point);
    return has_word(read_words(mount, "cgroup.controllers"), controller);
  }
  bool exists(const std::string& path) const { return sys::exists(caller_.mount_point + path); }
  std::string read(const Container& of, const char* file) const { return read_words(of.directory(), file); }

  Caller caller_;
  std::string top_;
  bool is_possible_ = false, needs_root_ = true;
};

TEST_F(Live, is_made_found_and_removed) {
  Container made = *Container::make(caller_, wanted("a/b"), 0);
  EXPECT_TRUE(made.exists());
  EXPECT_EQ(made.record().path, top_ + "/a/b");
  EXPECT_TRUE(exists(top_ + "/a/b"));
  Container found = *Container::find(caller_, made.record());
  EXPECT_TRUE(found.exists());
  EXPECT_TRUE(found.remove(kTimeout));
  EXPECT_FALSE(exists(top_ + "/a/b"));
  EXPECT_TRUE(made.remove(kTimeout));  // removing an absent cgroup succeeds
  Container gone = *Container::find(caller_, made.record());
  EXPECT_FALSE(gone.exists());
  EXPECT_EQ(gone.kill().error().text(), "cgroup " + top_ + "/a/b is gone");
}

TEST_F(Live, without_a_path_stands_in_a_place_of_ours_which_goes_with_the_last) {
  Wanted one, two;
  one.id = "coracle-test-one-" + std::to_string(::getpid());
  two.id = "coracle-test-two-" + std::to_string(::getpid());
  const std::string between = "coracle-test-between-" + std::to_string(::getpid());
  two.cgroups_path = between + "/" + two.id;
  Container first = *Container::make(caller_, one, 0), second = *Container::make(caller_, two, 0);
  EXPECT_EQ(first.record().path, "/coracle-oci/" + one.id);
  EXPECT_EQ(second.record().path, "/coracle-oci/" + between + "/" + two.id);
  ASSERT_TRUE(second.remove(kTimeout));
  EXPECT_FALSE(exists("/coracle-oci/" + between));
  EXPECT_TRUE(exists(first.record().path));
  ASSERT_TRUE(first.remove(kTimeout));
  EXPECT_FALSE(exists(first.record().path));
}

TEST_F(Live, many_are_made_and_removed_side_by_side_though_they_share_their_place) {
  std::vector<std::thread> threads;
  std::atomic<int> failures = 0;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        Wanted each;
        each.id = "coracle-test-" + std::to_string(::getpid()) + "-" + std::to_string(t);
        auto made = Container::make(caller_, each, 0);
        if (!made || !made->remove(kTimeout)) ++failures;
      }
    });
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(failures, 0);
}

TEST_F(Live, of_manager_disabled_is_none) {
  Wanted none = wanted("a");
  none.manager = Manager::disabled;
  none.resources.pids_limit = 5;
  Container made = *Container::make(caller_, none, 0);
  EXPECT_FALSE(made.exists());
  EXPECT_EQ(made.warnings(),
            std::vector<std::string>{"linux.resources.pids.limit: cgroups are disabled; the limit is not enforced"});
  EXPECT_EQ(made.freeze(kTimeout).error().text(), "the container has no cgroup (manager disabled)");
  EXPECT_TRUE(made.remove(kTimeout));
}

TEST_F(Live, leaves_nothing_when_it_cannot_be_made) {
  Wanted wrong = wanted("a/b/c");
  wrong.resources.unified["cpu.stat"] = "1";
  wrong.unenforceable = Unenforceable::refuse;
  auto made = Container::make(caller_, wrong, 0);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().text(), "linux.resources.unified.cpu.stat: write 1 to cpu.stat: Invalid argument");
  EXPECT_FALSE(exists(top_));
}

TEST_F(Live, refuses_or_tells_what_the_kernel_does_not_have) {
  Wanted odd = wanted("a");
  odd.resources.unified["memory.nonsense"] = "1";
  odd.unenforceable = Unenforceable::refuse;
  auto made = Container::make(caller_, odd, 0);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), Code::unsupported);
  EXPECT_TRUE(made.error().text().starts_with("linux.resources.unified.memory.nonsense: ")) << made.error().text();
  odd.unenforceable = Unenforceable::warn_on_v1;  // who asks for a file of v2 is not served by v1
  made = Container::make(caller_, odd, 0);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), Code::unsupported);
  odd.unenforceable = Unenforceable::warn;
  Container told = *Container::make(caller_, odd, 0);
  ASSERT_EQ(told.warnings().size(), 1u);
  EXPECT_TRUE(told.warnings()[0].ends_with("; the limit is not enforced"));
}

TEST_F(Live, is_refused_with_processes_in_it_or_frozen) {
  Container first = *Container::make(caller_, wanted("a"), 0);
  ASSERT_TRUE(first.freeze(kTimeout));  // an empty one can be frozen too
  EXPECT_EQ(Container::make(caller_, wanted("a"), 0).error().text(),
            "linux.cgroupsPath: container's cgroup unexpectedly frozen: " + top_ + "/a");
  ASSERT_TRUE(first.thaw(kTimeout));
  EXPECT_TRUE(Container::make(caller_, wanted("a"), 0));
  Child child;
  Container with = *Container::make(caller_, wanted("a"), child.pid());
  auto again = Container::make(caller_, wanted("a"), 0);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code(), Code::conflict);
  EXPECT_EQ(again.error().text(), "linux.cgroupsPath: container's cgroup is not empty: " + top_ + "/a");
  EXPECT_EQ(*with.pids(), std::vector<int>{child.pid()});
}

TEST_F(Live, threaded_is_refused) {
  Container top = *Container::make(caller_, wanted("a"), 0);
  ASSERT_TRUE(sys::make_directory_at(top.directory(), "t", 0755));
  Fd threaded = *sys::open_at(top.directory(), "t", O_RDONLY | O_DIRECTORY);
  ASSERT_TRUE(sys::write_control(threaded, "cgroup.type", "threaded"));
  auto made = Container::make(caller_, wanted("a/t"), 0);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), Code::unsupported);
  EXPECT_FALSE(Container::make(caller_, wanted("a/t/c"), 0));
  EXPECT_FALSE(exists(top_ + "/a/t/c"));
}

TEST_F(Live, kills_and_lists_all_within) {
  Container made = *Container::make(caller_, wanted("a"), 0);
  for (const char* name : {"x", "y"}) ASSERT_TRUE(sys::make_directory_at(made.directory(), name, 0755));
  Child one, two, three, outside;
  ASSERT_TRUE(made.attach(one.pid(), "", one.pid()));
  ASSERT_TRUE(made.attach(two.pid(), "x", two.pid()));
  ASSERT_TRUE(made.attach(three.pid(), "y", three.pid()));
  std::vector<int> all = {one.pid(), two.pid(), three.pid()};
  EXPECT_EQ(*made.pids(), all);
  EXPECT_EQ(made.remove(milliseconds(20)).error().code(), Code::timeout);
  made = *Container::find(caller_, made.record());
  ASSERT_TRUE(made.kill());
  for (Child* each : {&one, &two, &three}) EXPECT_EQ(WTERMSIG(each->wait()), SIGKILL);
  EXPECT_TRUE(made.pids()->empty());
  EXPECT_TRUE(made.remove(kTimeout));
  EXPECT_FALSE(exists(top_ + "/a"));
  EXPECT_EQ(::kill(outside.pid(), 0), 0);
}

TEST_F(Live, stops_and_goes_on) {
  auto* counter =
      static_cast<std::atomic<uint64_t>*>(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  Child child([&] {
    while (true) {
      ++*counter;
      ::usleep(1000);
    }
  });
  Container made = *Container::make(caller_, wanted("a"), child.pid());
  child.let_go();
  auto moves_on = [&] {
    uint64_t before = *counter;
    for (int i = 0; i < 30000 && *counter == before; ++i) ::usleep(1000);
    return *counter != before;
  };
  EXPECT_TRUE(moves_on());
  ASSERT_TRUE(made.freeze(kTimeout));
  EXPECT_TRUE(*made.is_frozen());
  uint64_t at = *counter;
  ::usleep(30000);
  EXPECT_EQ(*counter, at);
  ASSERT_TRUE(made.kill());  // kills frozen processes too
  EXPECT_EQ(WTERMSIG(child.wait()), SIGKILL);
  ASSERT_TRUE(made.thaw(kTimeout));
  EXPECT_FALSE(*made.is_frozen());
  ::munmap(counter, 4096);
}

TEST_F(Live, is_removed_however_deep_the_container_dug) {
  Container made = *Container::make(caller_, wanted("a"), 0);
  constexpr int kDepth = 300;
  Fd at = *sys::open_at(made.directory(), ".", O_RDONLY | O_DIRECTORY);
  for (int i = 0; i < kDepth; ++i) {
    for (const char* name : {"d", "e"}) ASSERT_TRUE(sys::make_directory_at(at, name, 0755));
    at = *sys::open_at(at, "d", O_RDONLY | O_DIRECTORY);
  }
  Child child;
  ASSERT_TRUE(put_in(at, child.pid()));
  EXPECT_EQ(*made.pids(), std::vector<int>{child.pid()});
  at.reset();
  ASSERT_TRUE(made.kill());
  (void)child.wait();
  EXPECT_TRUE(made.remove(kTimeout));
  EXPECT_FALSE(exists(top_ + "/a"));
}

TEST_F(Live, tells_what_happens) {
  Container made = *Container::make(caller_, wanted("a"), 0);
  Watch watch = *made.watch();
  CgroupEvent seen = *watch.now();
  EXPECT_FALSE(seen.populated);
  EXPECT_FALSE(*watch.next(seen, milliseconds(1)));  // no event
  Child child;
  ASSERT_TRUE(made.attach(child.pid(), "", child.pid()));
  auto next = *watch.next(seen, kTimeout);
  ASSERT_TRUE(next);
  EXPECT_TRUE(next->populated);
  std::thread killer([&] { (void)made.kill(); });
  next = *watch.next(*next, kTimeout);
  killer.join();
  ASSERT_TRUE(next);
  EXPECT_FALSE(next->populated);
  (void)child.wait();
  ASSERT_TRUE(made.remove(kTimeout));
  next = *watch.next(*next, kTimeout);
  ASSERT_TRUE(next);
  EXPECT_TRUE(next->gone);
  EXPECT_EQ(made.watch().error().code(), Code::not_found);
}

TEST_F(Live, takes_further_processes_where_they_may_stand) {
  Child child;
  Container made = *Container::make(caller_, wanted("a"), child.pid());
  auto same = [&](const Result<Fd>& got, const std::string& path) {
    struct stat one, two;
    return got && ::fstat(got->get(), &one) == 0 && ::stat((made.host_path() + path).c_str(), &two) == 0 &&
           one.st_ino == two.st_ino;
  };
  EXPECT_TRUE(same(made.directory_for("", child.pid()), ""));
  ASSERT_TRUE(sys::make_directory_at(made.directory(), "in", 0755));
  EXPECT_TRUE(same(made.directory_for("in", child.pid()), "/in"));
  EXPECT_TRUE(same(made.directory_for("..", child.pid()), ""));  // paths cannot leave the cgroup
  EXPECT_TRUE(same(made.directory_for("../../in", child.pid()), "/in"));
  EXPECT_FALSE(made.directory_for("none", child.pid()));
  // As a systemd in the container does: its own process in a leaf, controllers for the leaf's siblings.
  ASSERT_TRUE(made.attach(child.pid(), "in", child.pid()));
  std::string controllers = read(made, "cgroup.controllers");
  if (controllers.empty()) GTEST_SKIP() << "no controllers";
  ASSERT_TRUE(sys::write_control(made.directory(), "cgroup.subtree_control", "+" + controllers.substr(0, controllers.find(' '))));
  EXPECT_TRUE(same(made.directory_for("", child.pid()), "/in"));
  Child further;
  ASSERT_TRUE(made.attach(further.pid(), "", child.pid()));
  EXPECT_EQ(*path_of(further.pid()), *path_of(child.pid()));
  EXPECT_EQ(made.attach(further.pid(), "", ::getpid()).error().code(), Code::conflict);
}

TEST_F(Live, counts) {
  Child child([] {
    std::atomic<uint64_t> steps = 0;
    while (steps < 3000000) ++steps;
  });
  Container made = *Container::make(caller_, wanted("a"), child.pid());
  EXPECT_EQ(made.stats()->pids, 1u);
  child.let_go();
  (void)child.wait();
  Stats stats = *made.stats();
  EXPECT_GT(stats.cpu.usage_ns, 1000000u);
  // cgroup v1 has two clocks for processor time.
  EXPECT_NEAR(double(usage(made.directory())->cpu.count()), double(stats.cpu.usage_ns), double(stats.cpu.usage_ns) / 20);
  EXPECT_EQ(stats.pids, 0u);
}

TEST_F(Live, belongs_to_the_user_inside_who_may_divide_but_not_widen_it) {
  Container made = *Container::make(caller_, wanted("a"), 0);
  ASSERT_TRUE(made.give_to(12345, 12345));
  auto owner = [&](const char* file) { return sys::stat_at(made.directory(), file)->st_uid; };
  EXPECT_EQ(sys::stat(made.directory())->st_uid, 12345u);
  EXPECT_EQ(owner("cgroup.procs"), 12345u);
  EXPECT_EQ(owner("cgroup.subtree_control"), 12345u);
  EXPECT_EQ(owner("cgroup.freeze"), 0u);
  EXPECT_EQ(owner("cgroup.max.depth"), 0u);
}

// ---- devices ----

int open_null_in(const Container& made, int flags) {  // errno of opening /dev/null from within
  Child child([&] { ::_exit(::open("/dev/null", flags) < 0 ? errno : 0); });
  if (!put_in(made.directory(), child.pid())) return -1;
  child.let_go();
  return WEXITSTATUS(child.wait());
}

TEST_F(Live, filters_devices_and_changes_the_filter_whatever_else_is_attached) {
  Container made = *Container::make(caller_, wanted("a"), 0);
  auto filtered = made.filter_devices({{.allow = true, .type = 'c', .major = 1, .minor = 3, .write = false, .make = false}});
  if (!filtered) GTEST_SKIP() << filtered.error().text();
  EXPECT_EQ(open_null_in(made, O_RDONLY), 0);
  EXPECT_EQ(open_null_in(made, O_RDWR), EPERM);
  ASSERT_TRUE(made.filter_devices({{.allow = true}}));
  EXPECT_EQ(open_null_in(made, O_RDWR), 0);  // the later rule lifts the earlier ban
  // A second program of ours, as after two concurrent updates, and a program of another owner.
  Fd ours = *sys::load_device_program(sys::device_program({}));
  ASSERT_TRUE(sys::attach_device_program(made.directory(), ours));
  EXPECT_EQ(open_null_in(made, O_RDONLY), EPERM);
  ASSERT_TRUE(made.filter_devices({{.allow = true}}));
  EXPECT_EQ(open_null_in(made, O_RDWR), 0);
  EXPECT_EQ(made.filter_devices(std::vector<sys::DeviceMatch>(257)).error().text(),
            "linux.resources.devices: more than 256 rules");
}

// ---- limits ----

TEST_F(Live, holds_every_limit) {
  for (const char* each : {"memory", "cpu", "pids", "io", "cpuset"})
    if (!has(each)) GTEST_SKIP() << "cgroup v2 has no controller " << each << " here";
  Wanted limited = wanted("a");
  limited.unenforceable = Unenforceable::refuse;
  oci::Resources& in = limited.resources;
  in.memory_limit_bytes = 32 << 20;
  in.memory_swap_bytes = 32 << 20;
  in.memory_reservation_bytes = 16 << 20;
  in.cpu_shares = 512;
  in.cpu_quota_us = 20000;
  in.cpu_period_us = 50000;
  in.cpu_burst_us = 10000;
  in.cpuset_cpus = "0";
  in.cpuset_mems = "0";
  in.pids_limit = 5;
  in.unified = {{"memory.high", "25165824"}, {"cgroup.max.descendants", "10"}};
  auto result = Container::make(caller_, limited, 0);
  ASSERT_TRUE(result) << result.error().text();
  Container made = std::move(*result);
  EXPECT_TRUE(made.warnings().empty());
  EXPECT_EQ(read(made, "memory.max"), "33554432");
  EXPECT_EQ(read(made, "memory.low"), "16777216");
  EXPECT_EQ(read(made, "memory.high"), "25165824");
  EXPECT_EQ(read(made, "cpu.weight"), "59");
  EXPECT_EQ(read(made, "cpu.max"), "20000 50000");
  EXPECT_EQ(read(made, "cpu.max.burst"), "10000");
  EXPECT_EQ(read(made, "cpuset.cpus"), "0");
  EXPECT_EQ(read(made, "pids.max"), "5");
  // A quota below the present burst, with a smaller burst: either one alone would be refused.
  oci::Resources less;
  less.cpu_quota_us = 5000;
  less.cpu_period_us = 50000;
  less.cpu_burst_us = 1000;
  less.memory_limit_bytes = -1;
  less.pids_limit = -1;
  less.unified["cpuset.cpus"] = "";
  ASSERT_TRUE(made.update(less, Unenforceable::refuse));
  EXPECT_EQ(read(made, "cpu.max"), "5000 50000");
  EXPECT_EQ(read(made, "cpu.max.burst"), "1000");
  EXPECT_EQ(read(made, "memory.max"), "max");
  EXPECT_EQ(read(made, "pids.max"), "max");
  EXPECT_EQ(read(made, "cpuset.cpus"), "");
  EXPECT_EQ(read(made, "cpu.weight"), "59");  // values that are not given stay
  oci::Resources wrong;
  wrong.unified["memory.max"] = "many";
  EXPECT_TRUE(made.update(wrong, Unenforceable::warn).error().text().starts_with("linux.resources.unified.memory.max: "));
}

TEST_F(Live, holds_limits_of_disks_and_huge_pages) {
  auto disk = sys::read_file("/sys/class/block/vda/dev");
  if (!disk || !has("io") || !has("hugetlb")) GTEST_SKIP() << "no disk that is known, or no controller io or hugetlb";
  auto numbers = split(trim(*disk), ':');
  const int64_t major = *parse_number<int64_t>(numbers[0]), minor = *parse_number<int64_t>(numbers[1]);
  Wanted limited = wanted("a");
  limited.unenforceable = Unenforceable::refuse;
  oci::BlockIo& io = limited.resources.block_io;
  io.read_bps = {{major, minor, 1 << 20}};
  io.write_bps = {{major, minor, 2 << 20}};
  io.read_iops = {{major, minor, 100}};
  io.write_iops = {{major, minor, 200}};
  limited.resources.hugepage_limits = {{"2MB", 4 << 20}};
  auto result = Container::make(caller_, limited, 0);
  ASSERT_TRUE(result) << result.error().text();
  Container made = std::move(*result);
  EXPECT_EQ(read(made, "io.max"), std::string(trim(*disk)) + " rbps=1048576 wbps=2097152 riops=100 wiops=200");
  EXPECT_EQ(read(made, "hugetlb.2MB.max"), "4194304");
  EXPECT_EQ(read(made, "hugetlb.2MB.rsvd.max"), "4194304");
  EXPECT_EQ(made.stats()->hugepages["2MB"].limit, uint64_t(4 << 20));
  // A weight, if a disk scheduler supports weights; otherwise a warning that none does.
  oci::Resources weighed;
  weighed.block_io.weight = 500;
  auto updated = made.update(weighed, Unenforceable::refuse);
  bool is_known = sys::exists(made.host_path() + "/io.bfq.weight") || sys::exists(made.host_path() + "/io.weight");
  EXPECT_EQ(updated.ok(), is_known);
  if (!is_known) {
    EXPECT_EQ(updated.error().text(), "linux.resources.blockIO.weight: this kernel has no io.bfq.weight");
  }
  // The disk and the device do not exist.
  oci::Resources wrong;
  wrong.block_io.read_bps = {{4000, 1, 1}};
  EXPECT_TRUE(
      made.update(wrong, Unenforceable::warn).error().text().starts_with("linux.resources.blockIO.throttleReadBpsDevice: "));
  wrong = {};
  wrong.rdma["none"].hca_handles = 1;
  EXPECT_TRUE(made.update(wrong, Unenforceable::refuse).error().text().starts_with("linux.resources.rdma.none: "));
}

TEST_F(Live, tells_of_memory_that_ran_out) {
  if (!has("memory")) GTEST_SKIP() << "cgroup v2 has no controller memory here";
  Wanted limited = wanted("a");
  limited.resources.memory_limit_bytes = limited.resources.memory_swap_bytes = 8 << 20;
  Child child([] {
    char* at = static_cast<char*>(::mmap(nullptr, 64 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    std::memset(at, 1, 64 << 20);
  });
  Container made = *Container::make(caller_, limited, child.pid());
  Watch watch = *made.watch();
  CgroupEvent seen = *watch.now();
  child.let_go();
  while (seen.oom_kills == 0) {
    auto next = *watch.next(seen, kTimeout);
    ASSERT_TRUE(next);
    seen = *next;
  }
  EXPECT_EQ(WTERMSIG(child.wait()), SIGKILL);
  EXPECT_EQ(*oom_kills(made.directory()), 1u);
  EXPECT_EQ(made.stats()->memory.oom_kills, 1u);
  EXPECT_GT(made.stats()->memory.memory.failures, 0u);
}

TEST_F(Live, refuses_a_limit_below_what_is_in_use_where_that_is_asked) {
  if (!has("memory")) GTEST_SKIP() << "cgroup v2 has no controller memory here";
  Child child([] {
    char* at = static_cast<char*>(::mmap(nullptr, 16 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    std::memset(at, 1, 16 << 20);
    ::pause();
  });
  Container made = *Container::make(caller_, wanted("a"), child.pid());
  child.let_go();
  while (made.stats()->memory.memory.current < 16 << 20) ::usleep(1000);
  oci::Resources less;
  less.memory_limit_bytes = 8 << 20;
  less.memory_check_before_update = true;
  EXPECT_EQ(made.update(less, Unenforceable::refuse).error().code(), Code::conflict);
  EXPECT_EQ(read(made, "memory.max"), "max");
  less.memory_limit_bytes = 64 << 20;
  EXPECT_TRUE(made.update(less, Unenforceable::refuse));
}

TEST_F(Live, has_its_limits_in_v1_where_that_holds_the_controllers) {
  for (const char* each : {"pids", "memory", "cpu"})
    if (!std::count(caller_.held_by_v1.begin(), caller_.held_by_v1.end(), each))
      GTEST_SKIP() << "cgroup v1 does not hold " << each;
  Wanted limited = wanted("a/b");
  limited.unenforceable = Unenforceable::refuse;
  limited.resources.pids_limit = 100;
  limited.resources.memory_limit_bytes = 64 << 20;
  limited.resources.cpu_shares = 512;
  Container made = *Container::make(caller_, limited, 0);
  ASSERT_TRUE(made.has_v1());
  V1Cgroup counterparts = V1Cgroup::find(*v1_hierarchies(), made.record().path);
  auto read = [&](const char* controller, const char* file) {
    return read_words(*counterparts.directories().at(controller), file);
  };
  EXPECT_EQ(read("pids", "pids.max"), "100");
  EXPECT_EQ(read("memory", "memory.limit_in_bytes"), "67108864");
  EXPECT_EQ(read("cpu", "cpu.shares"), "512");
  std::vector<Fd> tasks = *made.v1_tasks();
  Child child([&] {
    for (const Fd& each : tasks)
      if (::write(each.get(), "0", 1) != 1) ::_exit(1);
    ::pause();
  });
  ASSERT_TRUE(put_in(made.directory(), child.pid()));
  child.let_go();
  auto text = [&] { return *sys::read_file("/proc/" + std::to_string(child.pid()) + "/cgroup"); };
  const std::vector<V1Hierarchy> hierarchies = *v1_hierarchies();
  for (const V1Hierarchy& each : hierarchies)
    while (text().find(":" + each.controllers[0] + ":" + made.record().path + "\n") == std::string::npos) ::usleep(1000);
  Stats stats = *made.stats();
  EXPECT_EQ(stats.pids, 1u);
  EXPECT_EQ(stats.pids_limit, 100u);
  EXPECT_EQ(stats.memory.memory.limit, uint64_t(64 << 20));
  Container found = *Container::find(caller_, made.record());
  oci::Resources less;
  less.pids_limit = 50;
  less.memory_limit_bytes = 32 << 20;
  ASSERT_TRUE(found.update(less, Unenforceable::refuse));
  EXPECT_EQ(read("pids", "pids.max"), "50");
  EXPECT_EQ(read("memory", "memory.limit_in_bytes"), "33554432");
  ASSERT_TRUE(found.kill());
  (void)child.wait();
  ASSERT_TRUE(found.remove(kTimeout));
  EXPECT_TRUE(V1Cgroup::find(*v1_hierarchies(), made.record().path).is_empty());
  EXPECT_TRUE(made.v1_tasks()->empty());
}

// Only root can create cgroups in v1.
TEST_F(Live, has_no_limit_where_v1_holds_the_controller_and_says_so) {
  if (!std::count(caller_.held_by_v1.begin(), caller_.held_by_v1.end(), "pids"))
    GTEST_SKIP() << "cgroup v1 does not hold pids here";
  caller_.is_privileged = false;
  Wanted limited = wanted("a");
  limited.resources.pids_limit = 100;
  Container made = *Container::make(caller_, limited, 0);
  EXPECT_EQ(made.warnings(), std::vector<std::string>{"linux.resources.pids.limit: the controller pids is not available in this "
                                                      "cgroup: cgroup v1 holds it; the limit is not enforced"});
  limited.cgroups_path += "b";
  limited.unenforceable = Unenforceable::refuse;
  EXPECT_EQ(Container::make(caller_, limited, 0).error().text(),
            "linux.resources.pids.limit: the controller pids is not available in this cgroup: cgroup v1 holds it");
  limited.resources.pids_limit = -1;
  EXPECT_TRUE(Container::make(caller_, limited, 0));
}

// ---- systemd ----

class Systemd : public Live {
 protected:
  Systemd() { needs_root_ = false; }
  void SetUp() override {
    Live::SetUp();
    if (IsSkipped()) return;
    const char* directory = ::getenv("XDG_RUNTIME_DIR");
    std::string socket =
        caller_.is_privileged ? "/run/systemd/private" : std::string(directory ? directory : "") + "/systemd/private";
    if (!sys::exists(socket) && !::getenv("DBUS_SESSION_BUS_ADDRESS")) GTEST_SKIP() << "no systemd: " << socket;
  }
  Wanted scope(const std::string& name) const {
    Wanted out;
    out.manager = Manager::systemd;
    out.id = name + std::to_string(::getpid());
    return out;
  }
  std::string told(const Container& of, const std::string& property) const {
    std::string command =
        (caller_.is_privileged ? "systemctl" : "XDG_RUNTIME_DIR=${CORACLE_TEST_RUNTIME_DIR:-$XDG_RUNTIME_DIR} systemctl --user") +
        std::string(" show -p ") + property + " --value " + of.record().unit;
    FILE* out = ::popen(command.c_str(), "r");
    char line[4096] = "";
    if (!::fgets(line, sizeof line, out)) line[0] = 0;
    ::pclose(out);
    return std::string(trim(line));
  }
};

TEST_F(Systemd, makes_limits_changes_and_ends_a_scope) {
  Child child;
  Wanted in = scope("whole");
  in.resources.memory_limit_bytes = 64 << 20;
  in.resources.pids_limit = 50;
  in.resources.unified["memory.oom.group"] = "1";
  if (caller_.is_privileged) {  // a user has only delegated controllers
    in.resources.cpu_shares = 512;
    in.resources.cpu_quota_us = 12345;
    in.resources.cpuset_cpus = "0";
  }
  in.annotations["org.systemd.property.TimeoutStopUSec"] = "uint64 5000000";
  in.unenforceable = Unenforceable::refuse;
  auto result = Container::make(caller_, in, child.pid());
  ASSERT_TRUE(result) << result.error().text();
  Container made = std::move(*result);
  EXPECT_TRUE(made.record().path.ends_with("/coracle-" + in.id + ".scope/container")) << made.record().path;
  EXPECT_EQ(*path_of(child.pid()), made.record().path);
  EXPECT_EQ(made.record().is_user, !caller_.is_privileged);
  EXPECT_EQ(read(made, "memory.max"), "67108864");
  EXPECT_EQ(read(made, "pids.max"), "50");
  EXPECT_EQ(read(made, "memory.oom.group"), "1");
  EXPECT_EQ(told(made, "MemoryMax"), "67108864");
  EXPECT_EQ(told(made, "Delegate"), "yes");
  EXPECT_EQ(told(made, "TimeoutStopUSec"), "5s");
  if (caller_.is_privileged) {
    EXPECT_EQ(read(made, "cpu.weight"), "59");
    EXPECT_EQ(read(made, "cpu.max"), "12345 100000");
    EXPECT_EQ(told(made, "CPUQuotaPerSecUSec"), "130ms");
    EXPECT_EQ(read(made, "cpuset.cpus"), "0");
    EXPECT_EQ(told(made, "Slice"), "system.slice");
  }
  // When systemd writes its settings again, they are ours.
  oci::Resources more;
  more.memory_limit_bytes = 128 << 20;
  more.pids_limit = 0;
  ASSERT_TRUE(made.update(more, Unenforceable::refuse, "1.3.0"));
  EXPECT_EQ(read(made, "memory.max"), "134217728");
  EXPECT_EQ(told(made, "MemoryMax"), "134217728");
  EXPECT_EQ(read(made, "pids.max"), "1");
  // … and it does so on a daemon-reload: all values stay, within the percent of a processor that systemd rounds to.
  if (caller_.is_privileged) {
    ASSERT_TRUE(made.filter_devices({{.allow = true, .type = 'c', .major = 1, .minor = 3, .write = false}}));
    ASSERT_EQ(std::system("systemctl daemon-reload && systemctl set-property --runtime system.slice CPUWeight=101 && "
                          "systemctl set-property --runtime system.slice CPUWeight=100"),
              0);
    EXPECT_EQ(read(made, "memory.max"), "134217728");
    EXPECT_EQ(read(made, "cpu.weight"), "59");
    EXPECT_TRUE(read(made, "cpu.max") == "12345 100000" || read(made, "cpu.max") == "13000 100000") << read(made, "cpu.max");
    EXPECT_EQ(read(made, "cpuset.cpus"), "0");
    EXPECT_EQ(read(made, "pids.max"), "1");
    EXPECT_EQ(open_null_in(made, O_RDWR), EPERM);
  }

  Child second;
  EXPECT_EQ(Container::make(caller_, in, second.pid()).error().code(), Code::conflict);  // the name is in use
  auto attached = made.attach(second.pid(), "", second.pid());
  EXPECT_TRUE(attached) << attached.error().text();
  EXPECT_EQ(*path_of(second.pid()), made.record().path);
  ASSERT_TRUE(made.freeze(kTimeout));
  ASSERT_TRUE(made.thaw(kTimeout));
  ASSERT_TRUE(made.kill());
  (void)child.wait();
  (void)second.wait();
  Container found = *Container::find(caller_, made.record());
  auto removed = found.remove(kTimeout);
  EXPECT_TRUE(removed) << removed.error().text();
  EXPECT_FALSE(exists(made.record().path));
  EXPECT_EQ(told(made, "LoadState"), "not-found");
}

TEST_F(Systemd, takes_the_name_of_one_that_was_left_behind) {
  for (int i = 0; i < 3; ++i) {
    Child child;
    Wanted in = scope("again");
    in.annotations[kSubgroupAnnotation] = i == 0 ? "mine" : "";
    auto made = Container::make(caller_, in, child.pid());
    ASSERT_TRUE(made) << made.error().text();
    EXPECT_EQ(*path_of(child.pid()), made->record().path);
    EXPECT_TRUE(made->record().path.ends_with(i == 0 ? ".scope/mine" : ".scope/container")) << made->record().path;
    ASSERT_TRUE(made->kill());
    (void)child.wait();
    bool is_removed = i != 1 || made->remove(kTimeout);  // otherwise systemd detects the end, maybe later
    EXPECT_TRUE(is_removed);
  }
}

TEST_F(Systemd, says_what_is_wrong) {
  Child child;
  Wanted in = scope("wrong");
  in.annotations["org.systemd.property.NoSuchThing"] = "true";
  auto made = Container::make(caller_, in, child.pid());
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().text().find("NoSuchThing"), std::string::npos) << made.error().text();
  EXPECT_FALSE(Container::make(caller_, scope("none"), 0));
  in = scope("name");
  in.annotations[kSubgroupAnnotation] = "../elsewhere";
  EXPECT_EQ(Container::make(caller_, in, child.pid()).error().text(),
            "annotations: run.oci.systemd.subgroup: \"../elsewhere\" is no name of a cgroup");
  in = scope("limits");
  in.resources.unified["memory.nonsense"] = "1";
  in.unenforceable = Unenforceable::refuse;
  made = Container::make(caller_, in, child.pid());  // fails after the scope was created, so the scope is removed
  ASSERT_FALSE(made);
  EXPECT_TRUE(made.error().text().starts_with("linux.resources.unified.memory.nonsense: ")) << made.error().text();
  EXPECT_EQ(WTERMSIG(child.wait()), SIGKILL);
}

TEST_F(Live, tells_that_there_is_no_systemd) {
  if (sys::exists("/run/systemd/private")) GTEST_SKIP() << "there is one";
  Child child;
  Wanted in = wanted("a");
  in.manager = Manager::systemd;
  in.cgroups_path = "";
  auto made = Container::make(caller_, in, child.pid());
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), Code::unavailable);
  EXPECT_TRUE(made.error().text().starts_with("systemd cannot be reached: /run/systemd/private: connect: No such file"))
      << made.error().text();
}

// ---- without root ----

class Rootless : public Live {
 protected:
  Rootless() { needs_root_ = false; }
  void SetUp() override {
    Live::SetUp();
    if (!IsSkipped() && caller_.is_privileged) GTEST_SKIP() << "for users other than root";
  }
};

TEST_F(Rootless, stands_where_it_was_delegated_or_nowhere) {
  const char* told = ::getenv("CORACLE_TEST_DELEGATED");
  if (!told) GTEST_SKIP() << "nobody says whether we may";
  bool is_delegated = std::string_view(told) == "yes";
  Wanted in;
  in.id = "rootless" + std::to_string(::getpid());
  Child child;
  auto made = Container::make(caller_, in, child.pid());
  ASSERT_TRUE(made) << made.error().text();
  EXPECT_EQ(made->exists(), is_delegated) << made->record().path;
  if (is_delegated) {
    EXPECT_EQ(*path_of(child.pid()), made->record().path);
    ASSERT_TRUE(made->kill());
    (void)child.wait();
    EXPECT_TRUE(made->remove(kTimeout));
    EXPECT_FALSE(exists(made->record().path));
  }
  in.resources.pids_limit = 5;
  in.unenforceable = Unenforceable::refuse;
  Child second;
  made = Container::make(caller_, in, second.pid());
  if (is_delegated) {
    ASSERT_TRUE(made) << made.error().text();
    EXPECT_EQ(read(*made, "pids.max"), "5");
    ASSERT_TRUE(made->kill());
    (void)second.wait();
    EXPECT_TRUE(made->remove(kTimeout));
  } else {
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code(), Code::forbidden);
    EXPECT_NE(made.error().text().find("Delegate=yes"), std::string::npos) << made.error().text();
  }
  in.resources = {};
  in.cgroups_path = "/coracle-test-rootless";
  EXPECT_EQ(Container::make(caller_, in, 0).error().code(), Code::forbidden);
}

}  // namespace
}  // namespace coracle::cgroup

// SPDX-License-Identifier: Apache-2.0
// Privileges that a process drops, while the processes that it starts keep them.
#include "runtime/sys/process.h"

#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "runtime/base/text.h"
#include "runtime/sys/file.h"

namespace coracle::sys {
namespace {

uint64_t set_of(const std::string& status, std::string_view name) {  // "CapEff" of /proc/…/status
  size_t at = status.find(std::string(name) + ":");
  return at == std::string::npos ? 0 : std::strtoull(status.c_str() + at + name.size() + 1, nullptr, 16);
}

std::string own_status() { return MUST(read_file("/proc/thread-self/status")); }

constexpr uint64_t kClock = uint64_t(1) << CAP_SYS_TIME | uint64_t(1) << CAP_WAKE_ALARM;  // one bit in each 32-bit half

TEST(Process, does_without_capabilities_that_its_programs_have_all_the_same) {
  std::string before, after, of_program;
  std::thread([&] {  // only for this thread: the other tests keep theirs
    before = own_status();
    MUST(do_without_capabilities(kClock));
    after = own_status();
    char name[] = "/tmp/coracle-process-XXXXXX";
    int out = ::mkstemp(name);
    pid_t child = ::fork();
    if (child == 0) {
      ::dup2(out, 1);
      ::execl("/bin/cat", "cat", "/proc/self/status", nullptr);
      ::_exit(127);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    of_program = MUST(read_file(name));
    ::close(out), ::unlink(name);
  })
      .join();
  EXPECT_EQ(set_of(after, "CapEff"), set_of(before, "CapEff") & ~kClock);
  EXPECT_EQ(set_of(after, "CapPrm"), set_of(before, "CapPrm")) << "what a privileged pod may get is counted by it";
  EXPECT_EQ(set_of(after, "CapBnd"), set_of(before, "CapBnd"));
  EXPECT_EQ(set_of(after, "CapInh"), 0u);
  EXPECT_EQ(set_of(after, "CapAmb"), 0u);
  if (own_uid() == 0) {
    EXPECT_EQ(set_of(of_program, "CapEff"), set_of(before, "CapBnd"));
  }
}

// Exits with the number of failed expectations.
int check_closed_memory() {
  auto own = own_capabilities();
  bool may_trace = own && (*own >> CAP_SYS_PTRACE & 1);
  close_own_memory();
  int wrong = 0;
  wrong += ::prctl(PR_GET_DUMPABLE) != (may_trace ? 0 : 1);
  constexpr int kGetMdwe = 66;
  int refuses = ::prctl(kGetMdwe, 0, 0, 0, 0);
  void* page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  bool became_code = ::mprotect(page, 4096, PROT_READ | PROT_EXEC) == 0;
  wrong += refuses > 0 && became_code;
  pid_t child = ::fork();  // a clone has the default again, for the sake of programs that it executes
  if (child == 0) {
    bool becomes = ::mprotect(page, 4096, PROT_READ | PROT_EXEC) == 0;
    ::_exit(becomes ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return wrong + (status != 0);
}

// Forks a child that is the first process of its pid namespace and runs `setting` before it reports. Needs root.
template <typename F>
pid_t first_process(F&& setting) {
  int ready[2];
  EXPECT_EQ(::pipe(ready), 0);
  pid_t child = pid_t(::syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, nullptr, nullptr, nullptr, nullptr));
  if (child == 0) {
    setting();
    (void)!::write(ready[1], "x", 1);
    for (;;) ::pause();
  }
  char byte;
  EXPECT_EQ(::read(ready[0], &byte, 1), 1);
  ::close(ready[0]), ::close(ready[1]);
  return child;
}

TEST(Process, knows_whose_signals_the_kernel_drops) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  EXPECT_FALSE(is_dropped(::getpid(), SIGTERM)) << "no first process";
  EXPECT_FALSE(is_dropped(1 << 30, SIGTERM)) << "nobody";
  auto ask = [](auto&& setting, int signal) {
    pid_t child = first_process(setting);
    bool dropped = is_dropped(child, signal);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    return dropped;
  };
  auto nothing = [] {};
  EXPECT_TRUE(ask(nothing, SIGTERM));
  EXPECT_TRUE(ask(nothing, SIGRTMAX));
  EXPECT_FALSE(ask(nothing, SIGKILL));
  EXPECT_FALSE(ask(nothing, 0));
  EXPECT_FALSE(ask([] { ::signal(SIGTERM, [](int) {}); }, SIGTERM));
  EXPECT_TRUE(ask([] { ::signal(SIGTERM, [](int) {}); }, SIGUSR2));
  EXPECT_FALSE(ask([] { ::signal(SIGTERM, SIG_IGN); }, SIGTERM)) << "it wants to be let be";
}

TEST(Process, closes_its_memory) {
  pid_t child = ::fork();
  if (child == 0) ::_exit(check_closed_memory());
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace coracle::sys

// SPDX-License-Identifier: Apache-2.0
// Programs for each action, loaded into the running kernel by child processes that then make the call.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/container/seccomp_program.h"
#include "tests/runtime/expect.h"

namespace coracle::runtime {
namespace {

constexpr int kNoFilter = 99;

// The status of a child that loads the program and runs `act` with the result of loading.
int status_of(const SeccompProgram& program, int (*act)(int loaded)) {
  pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    sock_fprog filter{uint16_t(program.instructions.size()),
                      reinterpret_cast<sock_filter*>(const_cast<uint64_t*>(program.instructions.data()))};
    long loaded = ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, program.flags, &filter);
    ::_exit(loaded < 0 ? kNoFilter : act(int(loaded)));
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

SeccompProgram program(const std::string& action, const char* more = "") {
  auto out = compile_seccomp(*parse_json(R"({"defaultAction":"SCMP_ACT_ALLOW","listenerPath":"/s")" + std::string(more) +
                                         R"(,"syscalls":[{"names":["getppid"],"action":)" + action + "}]}"),
                             0);
  EXPECT_TRUE(out.ok()) << out.error().text();
  return out ? std::move(*out) : SeccompProgram{};
}

// The call's errno, or 0.
int call_getppid(int) { return ::syscall(SYS_getppid) < 0 ? errno : 0; }

int exit_code(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status); }

TEST(SeccompKernel, does_as_each_action_says) {
  EXPECT_EQ(exit_code(status_of(program(R"("SCMP_ACT_ERRNO")"), call_getppid)), EPERM);
  EXPECT_EQ(exit_code(status_of(program(R"("SCMP_ACT_ERRNO","errnoRet":38)"), call_getppid)), ENOSYS);
#ifndef __SANITIZE_THREAD__  // the sanitizer's own thread would live on, and the process with it
  EXPECT_EQ(exit_code(status_of(program(R"("SCMP_ACT_KILL")"), call_getppid)), -SIGSYS);
  EXPECT_EQ(exit_code(status_of(program(R"("SCMP_ACT_KILL_THREAD")"), call_getppid)), -SIGSYS);
#endif
  EXPECT_EQ(exit_code(status_of(program(R"("SCMP_ACT_KILL_PROCESS")"), call_getppid)), -SIGSYS);
  EXPECT_EQ(exit_code(status_of(program(R"("SCMP_ACT_LOG")"), call_getppid)), 0);
  EXPECT_EQ(exit_code(status_of(program(R"("SCMP_ACT_ALLOW")"), call_getppid)), 0);
  EXPECT_EQ(exit_code(status_of(program(R"("SCMP_ACT_TRACE")"), call_getppid)), ENOSYS);  // without a tracer
}

TEST(SeccompKernel, takes_several_rules_on_arguments) {
  auto out = compile_seccomp(*parse_json(R"({"defaultAction":"SCMP_ACT_ALLOW","syscalls":[
    {"names":["getpriority"],"action":"SCMP_ACT_ERRNO","errnoRet":40,"args":[{"index":0,"value":1,"op":"SCMP_CMP_LT"}]},
    {"names":["getpriority"],"action":"SCMP_ACT_ERRNO","errnoRet":41,"args":[{"index":0,"value":4294967296,"op":"SCMP_CMP_GE"}]},
    {"names":["getpriority"],"action":"SCMP_ACT_ERRNO","errnoRet":42,"args":[{"index":0,"value":3,"valueTwo":2,"op":"SCMP_CMP_MASKED_EQ"}]}]})"),
                             0);
  ASSERT_OK(out);
  EXPECT_EQ(exit_code(status_of(*out, [](int) { return ::syscall(SYS_getpriority, 0L, 0L) < 0 ? errno : 0; })), 40);
  EXPECT_EQ(exit_code(status_of(*out, [](int) { return ::syscall(SYS_getpriority, 1L, 0L) < 0 ? errno : 0; })), 0);
  EXPECT_EQ(exit_code(status_of(*out, [](int) { return ::syscall(SYS_getpriority, 2L, 0L) < 0 ? errno : 0; })), 42);
#if __SIZEOF_LONG__ > 4  // else an argument has no such bit
  EXPECT_EQ(exit_code(status_of(*out, [](int) { return ::syscall(SYS_getpriority, 1L << 32, 0L) < 0 ? errno : 0; })), 41);
#endif
}

TEST(SeccompKernel, takes_the_flags) {
  EXPECT_EQ(exit_code(status_of(program(R"("SCMP_ACT_ERRNO")", R"(,"flags":["SECCOMP_FILTER_FLAG_LOG"])"), call_getppid)), EPERM);
  EXPECT_EQ(exit_code(status_of(
                program(R"("SCMP_ACT_ERRNO")", R"(,"flags":["SECCOMP_FILTER_FLAG_SPEC_ALLOW","SECCOMP_FILTER_FLAG_TSYNC"])"),
                call_getppid)),
            EPERM);
}

TEST(SeccompKernel, a_trap_is_a_signal_that_says_which_call) {
  auto act = [](int) {
    struct sigaction action {};
    action.sa_flags = SA_SIGINFO;
    action.sa_sigaction = [](int, siginfo_t* info, void*) { ::_exit(info->si_syscall == SYS_getppid ? 42 : 1); };
    ::sigaction(SIGSYS, &action, nullptr);
    ::syscall(SYS_getppid);
    return 2;
  };
  EXPECT_EQ(exit_code(status_of(program(R"("SCMP_ACT_TRAP")"), act)), 42);
}

TEST(SeccompKernel, a_listener_decides) {
  // The child listens. Its own child makes the call and gets the result that the listener sets.
  auto act = [](int listener) {
    pid_t caller = ::fork();
    if (caller == 0) ::_exit(::syscall(SYS_getppid) == 4242 ? 0 : 1);
    seccomp_notif asked{};
    if (::ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked) < 0) return 3;
    if (asked.data.nr != SYS_getppid || asked.pid != uint32_t(caller)) return 4;
    seccomp_notif_resp answer{};
    answer.id = asked.id;
    answer.val = 4242;
    if (::ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer) < 0) return 5;
    int status = 0;
    ::waitpid(caller, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 6;
  };
  EXPECT_EQ(exit_code(status_of(program(R"("SCMP_ACT_NOTIFY")"), act)), 0);
}

}  // namespace
}  // namespace coracle::runtime

// SPDX-License-Identifier: Apache-2.0
// See spawn_child.h. A test checks which functions this file calls.
#include "runtime/sys/spawn_child.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace coracle::sys {
namespace {

constexpr int kReserve = 10;  // descriptors are first moved above this, so that 0 to 3 are free

[[noreturn]] void give_up(SpawnChild* child, const char* step) noexcept {
  child->err = errno;
  child->step = step;
  ::_exit(127);
}

// Sets up the session, the streams and the descriptors. Returns the descriptor of the program.
int stand_alone(SpawnChild* child) noexcept {
  if (::setsid() < 0) give_up(child, "start session of");
  const int null = ::fcntl(child->null, F_DUPFD_CLOEXEC, kReserve);
  const int program = ::fcntl(child->program, F_DUPFD_CLOEXEC, kReserve);
  const int fd3 = child->fd3 < 0 ? -1 : ::fcntl(child->fd3, F_DUPFD_CLOEXEC, kReserve);
  if (null < 0 || program < 0 || (child->fd3 >= 0 && fd3 < 0)) give_up(child, "move descriptors of");
  for (int i = 0; i < 3; ++i)
    if (::dup2(null, i) < 0) give_up(child, "open standard streams of");
  if (fd3 >= 0 && ::dup2(fd3, 3) < 0) give_up(child, "pass descriptor to");
  if (::syscall(SYS_close_range, fd3 >= 0 ? 4 : 3, ~0u, 1u << 2 /* CLOSE_RANGE_CLOEXEC */) < 0)
    give_up(child, "close descriptors of");
  if (::chdir("/") < 0) give_up(child, "change directory of");
  return program;
}

}  // namespace

void run_spawned(SpawnChild* child) noexcept {
  sigset_t none;
  ::sigemptyset(&none);
  const int program = child->beside < 0 ? stand_alone(child) : child->program;
  if (child->beside >= 0 && ::fcntl(child->beside, F_SETFD, 0) < 0) give_up(child, "pass descriptor to");
  if (::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, nullptr, 8) < 0) give_up(child, "unblock signals of");
  ::syscall(SYS_execveat, program, "", child->argv, child->environment, AT_EMPTY_PATH);
  give_up(child, "execute");
}

// The child starts with an empty stack and cannot return to its caller: it jumps to run_spawned.
long clone_onto_stack(clone_args* arguments, size_t size, SpawnChild* child) noexcept {
#if defined(__x86_64__)
  long result;
  register SpawnChild* argument asm("r12") = child;
  register void (*entry)(SpawnChild*) noexcept asm("r13") = run_spawned;
  asm volatile(
      "syscall\n\t"
      "test %%rax, %%rax\n\t"
      "jnz 1f\n\t"
      "xor %%ebp, %%ebp\n\t"
      "and $-16, %%rsp\n\t"
      "mov %%r12, %%rdi\n\t"
      "call *%%r13\n\t"
      "ud2\n"
      "1:"
      : "=a"(result)
      : "a"(SYS_clone3), "D"(arguments), "S"(size), "r"(argument), "r"(entry)
      : "rcx", "r11", "memory", "cc");
  return result;
#elif defined(__aarch64__)
  register long number asm("x8") = SYS_clone3;
  register long first asm("x0") = reinterpret_cast<long>(arguments);
  register long second asm("x1") = long(size);
  register SpawnChild* argument asm("x20") = child;
  register void (*entry)(SpawnChild*) noexcept asm("x21") = run_spawned;
  asm volatile(
      "svc #0\n\t"
      "cbnz x0, 1f\n\t"
      "mov x29, #0\n\t"
      "mov x30, #0\n\t"
      "mov x0, x20\n\t"
      "blr x21\n\t"
      "brk #1\n"
      "1:"
      : "+r"(first)
      : "r"(number), "r"(second), "r"(argument), "r"(entry)
      : "memory", "cc");
  return first;
#elif defined(__arm__)
  // r7 holds the number and is the frame pointer of Thumb code: it is kept in r8 meanwhile.
  register long first asm("r0") = reinterpret_cast<long>(arguments);
  register long second asm("r1") = long(size);
  register SpawnChild* argument asm("r4") = child;
  register void (*entry)(SpawnChild*) noexcept asm("r5") = run_spawned;
  register long number asm("r6") = SYS_clone3;
  asm volatile(
      "mov r8, r7\n\t"
      "mov r7, r6\n\t"
      "svc #0\n\t"
      "mov r7, r8\n\t"
      "cmp r0, #0\n\t"
      "bne 1f\n\t"
      "mov r0, r4\n\t"
      "blx r5\n\t"
      "udf #1\n"
      "1:"
      : "+r"(first)
      : "r"(second), "r"(argument), "r"(entry), "r"(number)
      : "r8", "memory", "cc");
  return first;
#else
#error "spawn supports x86_64, aarch64 and arm"
#endif
}

}  // namespace coracle::sys

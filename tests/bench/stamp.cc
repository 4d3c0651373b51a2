// SPDX-License-Identifier: Apache-2.0
// The program in the benchmarks' containers: first it reads the clock (CLOCK_MONOTONIC, the same for all measurements), then it
// prints it, in nanoseconds. Then it exits with the given exit code, or stays: "stamp stay". It has no C library, so that the
// program's first instruction is ours.
#include "runtime/launch/kernel.h"

using coracle::launch::syscall;
using coracle::launch::word;

namespace {

void print(unsigned long long number) {
  char text[24];
  char* at = text + sizeof text;
  *--at = '\n';
  do *--at = char('0' + number % 10);
  while ((number /= 10) > 0);
  syscall(__NR_write, 1, word(at), text + sizeof text - at);
}

int number(const char* text) {
  int out = 0;
  for (; *text >= '0' && *text <= '9'; ++text) out = out * 10 + (*text - '0');
  return out;
}

}  // namespace

extern "C" [[noreturn]] void stamp_main(long* stack) {
  struct {
    long seconds, nanoseconds;
  } now{};
  syscall(__NR_clock_gettime, 1, word(&now));
  print((unsigned long long)(now.seconds) * 1000000000ull + (unsigned long long)(now.nanoseconds));
  long arguments = stack[0];
  const char* first = arguments > 1 ? reinterpret_cast<const char*>(stack[2]) : "0";
  if (*first == 's')
    for (;;) syscall(__NR_ppoll, 0, 0, 0, 0);
  for (;;) syscall(__NR_exit_group, number(first));
}

#if defined(__x86_64__)
asm(".globl _start\n_start:\n  mov %rsp, %rdi\n  and $-16, %rsp\n  call stamp_main\n  hlt\n");
#elif defined(__aarch64__)
asm(".globl _start\n_start:\n  mov x0, sp\n  b stamp_main\n");
#elif defined(__arm__)
asm(".arm\n.globl _start\n_start:\n  mov r0, sp\n  bic sp, sp, #7\n  b stamp_main\n");
extern "C" int raise(int) { __builtin_trap(); }  // see runtime/launch/start.cc
extern "C" void __aeabi_unwind_cpp_pr0() {}
#endif

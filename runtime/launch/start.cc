// SPDX-License-Identifier: Apache-2.0
// The start of a program without a C library (coracle-pause, launcher): the entry point, and four functions that the compiler may
// call for assignments. `stack`: the number of arguments, followed by their addresses.
#include <stddef.h>

extern "C" {

void* memcpy(void* to, const void* from, size_t size) {
  auto out = static_cast<char*>(to);
  auto in = static_cast<const char*>(from);
  for (size_t i = 0; i < size; ++i) out[i] = in[i];
  return to;
}

void* memmove(void* to, const void* from, size_t size) {
  auto out = static_cast<char*>(to);
  auto in = static_cast<const char*>(from);
  if (out < in) return memcpy(to, from, size);
  for (size_t i = size; i > 0; --i) out[i - 1] = in[i - 1];
  return to;
}

void* memset(void* to, int value, size_t size) {
  auto out = static_cast<char*>(to);
  for (size_t i = 0; i < size; ++i) out[i] = char(value);
  return to;
}

int memcmp(const void* a, const void* b, size_t size) {
  auto left = static_cast<const unsigned char*>(a), right = static_cast<const unsigned char*>(b);
  for (size_t i = 0; i < size; ++i)
    if (left[i] != right[i]) return left[i] < right[i] ? -1 : 1;
  return 0;
}

[[noreturn]] void coracle_main(const long* stack);

#if defined(__x86_64__)
asm(".globl _start\n"
    ".type _start, @function\n"
    "_start:\n"
    "  xor %ebp, %ebp\n"
    "  mov %rsp, %rdi\n"
    "  and $-16, %rsp\n"
    "  call coracle_main\n"
    "  hlt\n");
#elif defined(__aarch64__)
asm(".globl _start\n"
    ".type _start, %function\n"
    "_start:\n"
    "  mov x29, #0\n"
    "  mov x30, #0\n"
    "  mov x0, sp\n"
    "  b coracle_main\n");
#elif defined(__arm__)
asm(".arm\n"
    ".globl _start\n"
    ".type _start, %function\n"
    "_start:\n"
    "  mov fp, #0\n"
    "  mov lr, #0\n"
    "  mov r0, sp\n"
    "  bic sp, sp, #7\n"
    "  b coracle_main\n");

// The processor divides in the compiler's own library (-lgcc), which asks for these: the end of a division by zero, and what an
// exception would need to pass through it.
int raise(int) { __builtin_trap(); }
void __aeabi_unwind_cpp_pr0() {}
void __aeabi_unwind_cpp_pr1() {}
#endif
}

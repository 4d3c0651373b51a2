// SPDX-License-Identifier: Apache-2.0
// A system call by the processor's own convention: the number and six words in registers, and a negative errno in return. Source:
// syscall(2), "Architecture calling conventions".
#pragma once

#include <stdint.h>

namespace coracle::launch {

// An unspecified register value for unused arguments, so that no instruction sets them.
inline long any() {
  long value;
  asm volatile("" : "=r"(value));
  return value;
}

#if defined(__x86_64__)
inline long syscall(long number, long a = any(), long b = any(), long c = any(), long d = any(), long e = any(), long f = any()) {
  long result;
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
}
#elif defined(__aarch64__)
inline long syscall(long number, long a = any(), long b = any(), long c = any(), long d = any(), long e = any(), long f = any()) {
  register long x8 asm("x8") = number;
  register long x0 asm("x0") = a;
  register long x1 asm("x1") = b;
  register long x2 asm("x2") = c;
  register long x3 asm("x3") = d;
  register long x4 asm("x4") = e;
  register long x5 asm("x5") = f;
  asm volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
  return x0;
}
#elif defined(__arm__)
// As ARM instructions, because Thumb code may use r7 as its frame pointer (-marm in meson.build).
inline long syscall(long number, long a = any(), long b = any(), long c = any(), long d = any(), long e = any(), long f = any()) {
  register long r7 asm("r7") = number;
  register long r0 asm("r0") = a;
  register long r1 asm("r1") = b;
  register long r2 asm("r2") = c;
  register long r3 asm("r3") = d;
  register long r4 asm("r4") = e;
  register long r5 asm("r5") = f;
  asm volatile("svc #0" : "+r"(r0) : "r"(r7), "r"(r1), "r"(r2), "r"(r3), "r"(r4), "r"(r5) : "memory");
  return r0;
}
#else
#error "coracle supports x86_64, aarch64 and arm"
#endif

template <typename T>
inline long word(T* pointer) {
  return reinterpret_cast<long>(pointer);
}
inline long word(long value) { return value; }
// A pointer in a structure of the kernel's, which has 64 bits for it. Not by one cast: g++ would extend the sign of 32 bits, and
// a kernel of 64 bits refuses such an address.
inline uint64_t address(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

}  // namespace coracle::launch

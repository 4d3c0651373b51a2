// SPDX-License-Identifier: Apache-2.0
// See stack.h. Source: pthread_getattr_np(3), madvise(2).
#include "runtime/base/stack.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

namespace coracle {
namespace {

constexpr size_t kKept = 16 << 10;  // bytes below this function's frame: its own calls'. Stacks grow downwards

}  // namespace

void give_stack_back() {
  pthread_attr_t about;
  if (::pthread_getattr_np(::pthread_self(), &about) != 0) return;
  void* lowest = nullptr;
  size_t size = 0;
  const bool is_known = ::pthread_attr_getstack(&about, &lowest, &size) == 0;
  ::pthread_attr_destroy(&about);
  const uintptr_t page = uintptr_t(::sysconf(_SC_PAGESIZE)), here = uintptr_t(__builtin_frame_address(0));
  const uintptr_t from = uintptr_t(lowest), end = (here - kKept) / page * page;
  const bool is_ours = is_known && from < here && here <= from + size;            // not a stack that a checker gave us
  if (is_ours && from < end) (void)::madvise(lowest, end - from, MADV_DONTNEED);  // what stays is no harm
}

}  // namespace coracle

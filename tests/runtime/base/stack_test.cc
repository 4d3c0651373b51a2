// SPDX-License-Identifier: Apache-2.0
// What deep calls left in a thread's stack goes back, and everything goes on.
#include "runtime/base/stack.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <string>

#include "runtime/base/thread.h"

namespace coracle {
namespace {

constexpr size_t kDeep = 512 << 10;  // bytes

// The place of the lowest byte that it wrote.
[[gnu::noinline]] uintptr_t go_deep() {
  volatile char bytes[kDeep];
  for (size_t i = 0; i < kDeep; i += 512) bytes[i] = 1;
  return uintptr_t(&bytes[0]);
}

bool is_in_memory(uintptr_t place) {
  const uintptr_t page = uintptr_t(::sysconf(_SC_PAGESIZE));
  unsigned char there = 0;
  return ::mincore(reinterpret_cast<void*>(place / page * page), page, &there) == 0 && (there & 1);
}

TEST(Stack, of_deep_calls_goes_back) {
  start_thread("deep", [] {
    const std::string above(1000, 'x');
    char beside[2000];
    std::memset(beside, 'y', sizeof beside);
    for (int i = 0; i < 3; ++i) {
      const uintptr_t lowest = go_deep();
      ASSERT_TRUE(is_in_memory(lowest));
      give_stack_back();
      EXPECT_FALSE(is_in_memory(lowest));
      EXPECT_FALSE(is_in_memory(lowest + kDeep / 2));
    }
    EXPECT_EQ(above, std::string(1000, 'x'));
    EXPECT_EQ(std::string(beside, sizeof beside), std::string(2000, 'y'));
  });
}

TEST(Stack, of_the_first_thread_goes_back_too) {
  const uintptr_t lowest = go_deep();
  give_stack_back();
  EXPECT_FALSE(is_in_memory(lowest));
}

}  // namespace
}  // namespace coracle

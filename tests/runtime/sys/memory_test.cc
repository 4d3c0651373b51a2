// SPDX-License-Identifier: Apache-2.0
// Free memory returns to the kernel, and the program keeps working.
#include "runtime/sys/memory.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

extern "C" const char __executable_start, etext;  // symbols of the linker: the start and end of this program's code

namespace coracle::sys {
namespace {

size_t kib_of_rollup(const char* field) {
  std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen("/proc/self/smaps_rollup", "re"), std::fclose);
  char line[256];
  size_t kib = 0;
  while (file && std::fgets(line, sizeof line, file.get()))
    if (std::string(line).starts_with(std::string(field) + ":")) std::sscanf(line + std::string(field).size() + 1, "%zu", &kib);
  return kib;
}

// Sanitizers have their own allocators and shadow memory.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kOwnAllocator = false;
#else
constexpr bool kOwnAllocator = true;
#endif

// 10,000 objects of a kilobyte, of which one in a hundred stays: the rest are holes.
TEST(Memory, holes_go_back) {
  if (!kOwnAllocator) GTEST_SKIP() << "sanitizers have an allocator of their own";
  std::vector<std::string> all, kept;
  for (int i = 0; i < 10'000; ++i) all.emplace_back(1000, 'x');
  size_t full = kib_of_rollup("Anonymous");
  for (size_t i = 0; i < all.size(); i += 100) kept.push_back(std::move(all[i]));
  std::vector<std::string>().swap(all);
  give_memory_back();
  EXPECT_LE(kib_of_rollup("Anonymous") + 8'000, full);
  for (const std::string& one : kept) EXPECT_EQ(one, std::string(1000, 'x'));
}

TEST(Memory, code_goes_and_comes_back_under_who_runs_it) {
  if (!kOwnAllocator) GTEST_SKIP() << "sanitizers map more than files";
  std::jthread other([](std::stop_token stop) {
    while (!stop.stop_requested()) (void)std::to_string(1.5 * double(std::vector<int>(100, 7).size()));
  });
  for (int i = 0; i < 50; ++i) give_memory_back();
  other = {};
  unsigned sum = 0;
  for (const volatile char* at = &__executable_start; at < &etext; at += 4096) sum += unsigned(*at);  // faults in all of it
  auto files = [] { return kib_of_rollup("Rss") - kib_of_rollup("Anonymous"); };
  size_t used = files();
  give_memory_back();
  EXPECT_LT(files(), used) << sum;
}

}  // namespace
}  // namespace coracle::sys

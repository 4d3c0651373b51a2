// SPDX-License-Identifier: Apache-2.0
// Blocks of pages: their owner, their state when freed, and concurrent threads.
#include "runtime/sys/page_pool.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <map>
#include <random>
#include <thread>
#include <vector>

namespace coracle::sys {
namespace {

constexpr size_t kPage = PagePool::kPage;

// The number of resident pages, counting only pages that are entirely within the block.
size_t resident_pages(const void* block, size_t size) {
  auto page = uintptr_t(::sysconf(_SC_PAGESIZE)), from = (uintptr_t(block) + page - 1) / page * page,
       to = (uintptr_t(block) + size) / page * page;
  if (from >= to) return 0;
  std::vector<unsigned char> state((to - from) / page);
  EXPECT_EQ(::mincore(reinterpret_cast<void*>(from), to - from, state.data()), 0);
  size_t count = 0;
  for (unsigned char one : state) count += one & 1;
  return count;
}

TEST(PagePool, blocks_are_whole_pages_of_their_own) {
  PagePool pool;
  std::mt19937 random(1);
  std::map<char*, std::pair<size_t, char>> held;
  for (int i = 0; i < 3000; ++i) {
    if (held.size() > 100 || (!held.empty() && random() % 3 == 0)) {
      auto one = std::next(held.begin(), long(random() % held.size()));
      auto [at, what] = *one;
      for (size_t j = 0; j < what.first; j += 512) ASSERT_EQ(at[j], what.second);
      ASSERT_EQ(at[what.first - 1], what.second);
      pool.give(at, what.first);
      held.erase(one);
      continue;
    }
    size_t asked = 1 + random() % (2 * PagePool::kPooledMax), size = asked;
    auto* at = static_cast<char*>(pool.take(size));
    ASSERT_GE(size, asked);
    ASSERT_EQ(size % kPage, 0u);
    ASSERT_LT(size, asked + kPage);
    std::memset(at, i, size);
    ASSERT_TRUE(held.emplace(at, std::pair(size, char(i))).second);
    if (i % 500 == 0) pool.give_pages_back();
  }
  for (auto [at, what] : held) pool.give(at, what.first);
}

TEST(PagePool, takes_again_what_is_free) {
  PagePool pool;
  size_t size = 3 * kPage, other = kPage;
  void* first = pool.take(size);
  void* second = pool.take(other);
  pool.give(first, size);
  EXPECT_NE(pool.take(other), first) << "it is of another size";
  EXPECT_EQ(pool.take(size), first);
  EXPECT_NE(second, first);
}

TEST(PagePool, gives_back_the_pages_of_what_is_free_and_of_nothing_else) {
  PagePool pool;
  constexpr size_t kBlocks = 64;
  size_t size = 4 * kPage;
  std::vector<void*> blocks;
  for (size_t i = 0; i < kBlocks; ++i) std::memset(blocks.emplace_back(pool.take(size)), 'x', size);
  size_t before = resident_pages(blocks[0], size);
  EXPECT_GT(before, 0u);
  for (size_t i = 1; i < kBlocks; ++i) pool.give(blocks[i], size);
  pool.give_pages_back();
  EXPECT_EQ(resident_pages(blocks[0], size), before);
  EXPECT_EQ(static_cast<char*>(blocks[0])[size - 1], 'x');
  size_t left = 0;
  for (size_t i = 1; i < kBlocks; ++i) left += resident_pages(blocks[i], size);
  EXPECT_LE(left, 4u) << "but where a page is shared with a block that is held";
  auto* again = static_cast<char*>(pool.take(size));
  std::memset(again, 'y', size);
  EXPECT_EQ(again[size - 1], 'y');
}

TEST(PagePool, serves_many_threads) {
  PagePool pool;
  std::vector<std::jthread> threads;
  std::atomic<int> wrong = 0;
  for (char name = 'a'; name < 'e'; ++name)
    threads.emplace_back([&, name] {
      for (size_t i = 0; i < 3000; ++i) {
        size_t size = kPage * (1 + i % 5);
        auto* at = static_cast<char*>(pool.take(size));
        at[0] = at[size - 1] = name;
        if (i % 1000 == 0) pool.give_pages_back();
        wrong += at[0] != name || at[size - 1] != name;
        pool.give(at, size);
      }
    });
  threads.clear();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace coracle::sys

// SPDX-License-Identifier: Apache-2.0
// Long-lived blocks: their owner, their placement, and the return of pages without used blocks.
#include "runtime/sys/slab_pool.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <thread>
#include <vector>

namespace coracle::sys {
namespace {

uintptr_t page_of(const void* block) { return uintptr_t(block) / uintptr_t(::sysconf(_SC_PAGESIZE)); }

// Whether the page with the block's first byte is resident; false for an unmapped address.
bool is_resident(const void* block) {
  const auto page = uintptr_t(::sysconf(_SC_PAGESIZE));
  unsigned char state = 0;
  return ::mincore(reinterpret_cast<void*>(page_of(block) * page), page, &state) == 0 && (state & 1);
}

TEST(SlabPool, blocks_are_apart_and_aligned_and_keep_what_is_in_them) {
  SlabPool pool;
  std::mt19937 random(1);
  std::map<char*, std::pair<size_t, char>> held;
  for (int i = 0; i < 20000; ++i) {
    if (held.size() > 500 || (!held.empty() && random() % 3 == 0)) {
      auto one = std::next(held.begin(), long(random() % held.size()));
      auto [at, what] = *one;
      for (size_t j = 0; j < what.first; ++j) ASSERT_EQ(at[j], what.second);
      pool.give(at, what.first);
      held.erase(one);
      continue;
    }
    size_t size = 1 + random() % (random() % 8 ? 2000 : 3 * SlabPool::kSlabbedMax);
    auto* at = static_cast<char*>(pool.take(size));
    ASSERT_EQ(uintptr_t(at) % alignof(std::max_align_t), 0u);
    auto next = held.lower_bound(at);
    const char* end_before = next == held.begin() ? at : std::prev(next)->first + std::prev(next)->second.first;
    ASSERT_LE(end_before, at);
    ASSERT_LE(at + size, next == held.end() ? at + size : next->first);
    std::memset(at, i, size);
    held.emplace(at, std::pair(size, char(i)));
    if (i % 1000 == 0) pool.give_pages_back();
  }
  for (auto [at, what] : held) pool.give(at, what.first);
}

TEST(SlabPool, every_size_up_to_the_largest_has_its_place) {
  SlabPool pool;
  std::vector<std::pair<char*, size_t>> all;
  for (size_t size = 1; size <= SlabPool::kSlabbedMax + 1; ++size) {
    auto* at = static_cast<char*>(pool.take(size));
    at[0] = at[size - 1] = char(size);
    all.emplace_back(at, size);
  }
  for (auto [at, size] : all) {
    ASSERT_EQ(at[0], char(size));
    ASSERT_EQ(at[size - 1], char(size)) << size;
    pool.give(at, size);
  }
}

TEST(SlabPool, small_blocks_take_little_more_than_they_are_long) {
  constexpr size_t kBlocks = 4000;
  for (size_t size : {200, 777, 1100, 3000}) {
    SlabPool pool;
    std::set<uintptr_t> pages;
    for (size_t i = 0; i < kBlocks; ++i) {
      auto* at = static_cast<char*>(pool.take(size));
      pages.insert(page_of(at));
      pages.insert(page_of(at + size - 1));
    }
    EXPECT_LT(double(pages.size()) * double(::sysconf(_SC_PAGESIZE)), 1.15 * double(kBlocks * size)) << size;
  }
}

TEST(SlabPool, what_stays_comes_to_lie_together) {
  constexpr size_t kSize = 900, kBlocks = 2000, kStay = 100;
  SlabPool pool;
  std::vector<void*> blocks, stay;
  for (size_t i = 0; i < kBlocks; ++i) blocks.push_back(pool.take(kSize));
  for (size_t i = 0; i < kBlocks; ++i) {  // one of twenty stays
    if (i % (kBlocks / kStay) == 0) stay.push_back(blocks[i]);
    else pool.give(blocks[i], kSize);
  }
  std::set<uintptr_t> before, after;
  for (void* block : stay) before.insert(page_of(block));
  for (void*& block : stay) {  // each is replaced by a new one, like objects that change
    void* next = pool.take(kSize);
    pool.give(block, kSize);
    block = next;
  }
  for (void* block : stay) after.insert(page_of(block));
  EXPECT_LT(after.size(), before.size() / 2);
}

TEST(SlabPool, gives_back_the_pages_of_what_is_free_and_of_nothing_else) {
  constexpr size_t kSize = 1000, kBlocks = 1000;
  SlabPool pool;
  std::vector<char*> blocks;
  for (size_t i = 0; i < kBlocks; ++i) {
    blocks.push_back(static_cast<char*>(pool.take(kSize)));
    std::memset(blocks.back(), char(i), kSize);
  }
  constexpr size_t kEvery = 100;
  std::set<uintptr_t> held;
  for (size_t i = 0; i < kBlocks; ++i) {
    if (i % kEvery) pool.give(blocks[i], kSize);
    else held.insert(page_of(blocks[i])), held.insert(page_of(blocks[i] + kSize - 1));
  }
  pool.give_pages_back();
  std::set<uintptr_t> resident;
  for (char* block : blocks)
    if (is_resident(block)) resident.insert(page_of(block));
  size_t slabs = kBlocks * kSize / (60 << 10) + 1;
  EXPECT_LE(resident.size(), held.size() + slabs) << "what is in use, and the head of each slab";
  for (size_t i = 0; i < kBlocks; i += kEvery)
    for (size_t j = 0; j < kSize; ++j) ASSERT_EQ(blocks[i][j], char(i));
  for (size_t i = 0; i < kBlocks; i += kEvery) pool.give(blocks[i], kSize);
  pool.give_pages_back();
  for (char* block : blocks) EXPECT_FALSE(is_resident(block));
  std::memset(pool.take(kSize), 'x', kSize);
}

TEST(SlabPool, serves_many_threads) {
  SlabPool pool;
  std::vector<std::jthread> threads;
  std::atomic<int> wrong = 0;
  for (char name = 'a'; name < 'e'; ++name)
    threads.emplace_back([&, name] {
      std::vector<std::pair<char*, size_t>> mine;
      for (size_t i = 0; i < 5000; ++i) {
        size_t size = 100 + i * 37 % 3000;
        mine.emplace_back(static_cast<char*>(pool.take(size)), size);
        mine.back().first[0] = mine.back().first[size - 1] = name;
        if (i % 1000 == 0) pool.give_pages_back();
        if (mine.size() < 50) continue;
        auto [at, length] = mine[i % mine.size()];
        wrong += at[0] != name || at[length - 1] != name;
        pool.give(at, length);
        mine.erase(mine.begin() + long(i % mine.size()));
      }
      for (auto [at, length] : mine) pool.give(at, length);
    });
  threads.clear();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace coracle::sys

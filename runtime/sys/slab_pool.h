// SPDX-License-Identifier: Apache-2.0
// SlabPool: blocks of any size that stay for long, apart from the allocator's memory: there each of them would pin a page, when
// what lay around it has gone. Blocks of about one size lie together in slabs. A free place is used again first where most are in
// use, so that a slab from which most has gone loses the rest, too. Thread-safe. Of a pool that is destroyed the memory stays
// taken.
#pragma once

#include <cstddef>
#include <memory>

namespace coracle::sys {

class SlabPool {
 public:
  static constexpr size_t kSlabbedMax = 8 << 10;  // bytes; larger blocks are whole pages
  static constexpr size_t kSmallest = 48;         // smaller ones take so much

  SlabPool();
  ~SlabPool();
  static SlabPool& of_process();
  static SlabPool& of_lasting();  // the process's second one: for blocks that outlive what is made at the same time, by an hour

  // A block of at least `size` bytes, aligned for everything. Its contents are undefined. Throws std::bad_alloc.
  void* take(size_t size);
  // `size`: as it was asked for.
  void give(void* block, size_t size);
  // Gives the pages in which nothing is in use back to the system: microseconds for each stretch of them. Others wait for a
  // slab's at the most.
  void give_pages_back();
  static void give_all_pages_back();  // of both

 private:
  struct Slab;
  struct State;
  std::unique_ptr<State> state_;
};

// For containers whose entries stay: their memory is a SlabPool's of the process, the first one's unless the other is named.
template <typename T>
struct SlabAllocator {
  using value_type = T;
  SlabPool* pool = &SlabPool::of_process();
  SlabAllocator() = default;
  explicit SlabAllocator(SlabPool& from) : pool(&from) {}
  template <typename Other>
  SlabAllocator(const SlabAllocator<Other>& other) : pool(other.pool) {}
  T* allocate(size_t count) { return static_cast<T*>(pool->take(count * sizeof(T))); }
  void deallocate(T* at, size_t count) { pool->give(at, count * sizeof(T)); }
  template <typename Other>
  bool operator==(const SlabAllocator<Other>& other) const {
    return pool == other.pool;
  }
};

}  // namespace coracle::sys

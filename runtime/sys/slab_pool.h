// SPDX-License-Identifier: Apache-2.0
// SlabPool: long-lived blocks of any size, separate from malloc. In malloc's heap a long-lived block would pin its page after
// everything around it is freed. Blocks of similar size share slabs. The fullest slab is used first, so that a nearly empty slab
// can become empty. Thread-safe. The memory of a destroyed pool is not freed.
#pragma once

#include <cstddef>
#include <memory>

namespace coracle::sys {

class SlabPool {
 public:
  static constexpr size_t kSlabbedMax = 8 << 10;  // bytes; larger blocks are whole pages
  static constexpr size_t kSmallest = 48;         // the size of the smallest block

  SlabPool();
  ~SlabPool();
  static SlabPool& of_process();
  static SlabPool& of_lasting();  // the second pool: for blocks that live an hour longer than others made at the same time

  // A block of at least `size` bytes, aligned for any type. The contents are undefined. Throws std::bad_alloc.
  void* take(size_t size);
  // Frees a block. `size` is the size that was requested.
  void give(void* block, size_t size);
  // Returns unused pages to the kernel; takes microseconds per contiguous range. Other threads wait at most for the time of one
  // slab.
  void give_pages_back();
  static void give_all_pages_back();  // of both pools

 private:
  struct Slab;
  struct State;
  std::unique_ptr<State> state_;
};

// For containers with long-lived entries: allocates from SlabPool::of_process() or from another named pool.
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

// SPDX-License-Identifier: Apache-2.0
// PagePool: blocks of whole pages, apart from the allocator's memory. For what is taken in large pieces, lives shortly and is
// taken by many threads at a time: between it, what stays would pin the allocator's memory piece by piece long after the rest has
// gone.
#pragma once

#include <array>
#include <cstddef>
#include <mutex>
#include <vector>

namespace coracle::sys {

class PagePool {
 public:
  static constexpr size_t kPage = 4096;             // bytes, which blocks have some of: a page of the machine, or a part of one
  static constexpr size_t kPooledMax = 16 * kPage;  // larger blocks are taken from the system and given back each by itself

  // A block of at least `size` bytes, which is set to what it really has. Its contents are undefined. Throws std::bad_alloc.
  void* take(size_t& size);
  // `size`: as take() set it.
  void give(void* block, size_t size);
  // Gives the pages of all free blocks back to the system; the addresses stay. Microseconds for each stretch of them.
  void give_pages_back();

 private:
  static constexpr size_t kChunk = 64 * kPage;  // taken from the system at once
  void* carve(size_t size);

  std::mutex mutex_;
  std::array<std::vector<void*>, kPooledMax / kPage> free_;  // by the number of pages, less one; the last one used comes first
  char *rest_ = nullptr, *rest_end_ = nullptr;               // of the newest chunk
};

}  // namespace coracle::sys

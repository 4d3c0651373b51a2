// SPDX-License-Identifier: Apache-2.0
// PagePool: blocks of whole pages, separate from malloc. It is for large, short-lived blocks that many threads take at once. In
// malloc's heap, long-lived objects allocated between them would pin the memory long after these blocks are freed.
#pragma once

#include <array>
#include <cstddef>
#include <mutex>
#include <vector>

namespace coracle::sys {

class PagePool {
 public:
  static constexpr size_t kPage = 4096;             // bytes, the unit of block sizes: a page of the machine, or a part of one
  static constexpr size_t kPooledMax = 16 * kPage;  // larger blocks are mapped and unmapped individually

  // Returns a block of at least `size` bytes and sets `size` to its real size. The contents are undefined. Throws std::bad_alloc.
  void* take(size_t& size);
  // Frees a block. `size` is the value that take() set.
  void give(void* block, size_t size);
  // Returns the pages of all free blocks to the kernel; the addresses stay mapped. Takes microseconds per contiguous range.
  void give_pages_back();

 private:
  static constexpr size_t kChunk = 64 * kPage;  // mapped from the kernel at once
  void* carve(size_t size);

  std::mutex mutex_;
  std::array<std::vector<void*>, kPooledMax / kPage> free_;  // by number of pages, minus one; the last freed block comes first
  char *rest_ = nullptr, *rest_end_ = nullptr;               // the unused part of the newest chunk
};

}  // namespace coracle::sys

// SPDX-License-Identifier: Apache-2.0
// See page_pool.h. Source: mmap(2), madvise(2).
#include "runtime/sys/page_pool.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <memory_resource>
#include <utility>

#include "runtime/sys/poison.h"

namespace coracle::sys {
namespace {

void* map(size_t size) {
  void* at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return at != MAP_FAILED ? at : std::pmr::null_memory_resource()->allocate(size);  // which throws std::bad_alloc
}

}  // namespace

void* PagePool::take(size_t& size) {
  size = (size + kPage - 1) / kPage * kPage;
  if (size > kPooledMax) return map(size);
  std::lock_guard lock(mutex_);
  std::vector<void*>& free = free_[size / kPage - 1];
  if (free.empty()) return carve(size);
  void* block = free.back();
  free.pop_back();
  unpoison(block, size);
  return block;
}

// The rest of a chunk that is too small becomes free blocks.
void* PagePool::carve(size_t size) {
  if (size_t left = size_t(rest_end_ - rest_); left < size) {
    if (left) free_[left / kPage - 1].push_back(rest_);
    rest_ = static_cast<char*>(map(kChunk));
    rest_end_ = rest_ + kChunk;
  }
  char* block = rest_;
  rest_ += size;
  return block;
}

void PagePool::give(void* block, size_t size) {
  if (size > kPooledMax) {
    (void)::munmap(block, size);
    return;
  }
  std::lock_guard lock(mutex_);
  poison(block, size);
  free_[size / kPage - 1].push_back(block);
}

// Adjacent blocks are returned together: if the machine's pages are larger, a single block may contain no whole page.
void PagePool::give_pages_back() {
  const uintptr_t page = uintptr_t(::sysconf(_SC_PAGESIZE));
  std::lock_guard lock(mutex_);
  std::vector<std::pair<uintptr_t, uintptr_t>> stretches;
  for (size_t i = 0; i < free_.size(); ++i)
    for (void* block : free_[i]) stretches.emplace_back(uintptr_t(block), uintptr_t(block) + (i + 1) * kPage);
  std::ranges::sort(stretches);
  for (size_t i = 0; i < stretches.size(); ++i) {
    auto [from, to] = stretches[i];
    for (; i + 1 < stretches.size() && stretches[i + 1].first == to; ++i) to = stretches[i + 1].second;
    from = (from + page - 1) / page * page, to = to / page * page;
    if (from < to) (void)::madvise(reinterpret_cast<void*>(from), to - from, MADV_DONTNEED);
  }
}

}  // namespace coracle::sys

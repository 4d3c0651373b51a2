// SPDX-License-Identifier: Apache-2.0
// See slab_pool.h. Source: mmap(2), madvise(2).
//   region ──▶ unused slab ──▶ slab of blocks of one size, with a free block ◀──▶ full slab
//                   ▲────────────────────────────┘ none of its blocks is in use
#include "runtime/sys/slab_pool.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <memory_resource>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/sys/page_pool.h"
#include "runtime/sys/poison.h"

namespace coracle::sys {
namespace {

constexpr size_t kSlab = 64 << 10;      // bytes; aligned to its size
constexpr size_t kRegion = 16 * kSlab;  // mapped at once
constexpr size_t kQuarters = 4;

// Sizes of blocks: up to kEvenMax bytes in steps of kGranule, above that in steps of an eighth of the next lower power of two.
constexpr size_t kGranule = 16, kEvenMax = 128, kSteps = 8;
constexpr int kEvenWidth = std::bit_width(kEvenMax) - 1, kStepsWidth = std::bit_width(kSteps) - 1;

// The index of the smallest size that is large enough.
constexpr size_t number_of(size_t size) {
  size = std::max(size, SlabPool::kSmallest);
  if (size <= kEvenMax) return (size - 1) / kGranule;
  int width = std::bit_width(size - 1) - 1;
  size_t step = (size - 1 - (size_t(1) << width)) >> (width - kStepsWidth);
  return size_t(width - kEvenWidth + 1) * kSteps + step;
}

constexpr size_t size_of(size_t number) {
  if (number < kSteps) return (number + 1) * kGranule;
  size_t width = size_t(kEvenWidth) + number / kSteps - 1;
  return (size_t(1) << width) + ((number % kSteps + 1) << (width - kStepsWidth));
}

constexpr size_t kSizes = number_of(SlabPool::kSlabbedMax) + 1;
static_assert(size_of(kSizes - 1) == SlabPool::kSlabbedMax);

template <typename T>
struct Links {
  T *previous = nullptr, *next = nullptr;
};

template <typename T, Links<T> T::*kLinks>
struct List {
  T* first = nullptr;
  void push(T* one) {
    (one->*kLinks) = {nullptr, first};
    if (first) (first->*kLinks).previous = one;
    first = one;
  }
  void remove(T* one) {
    Links<T> links = std::exchange(one->*kLinks, {});
    (links.previous ? (links.previous->*kLinks).next : first) = links.next;
    if (links.next) (links.next->*kLinks).previous = links.previous;
  }
};

}  // namespace

// The header of a slab's memory; the blocks follow.
struct SlabPool::Slab {
  Links<Slab> with_a_place, with_free_pages;
  size_t number = 0;  // index of its block size
  size_t used = 0, places = 0;
  bool may_have_free_pages = false;                             // a block was freed since its pages were returned
  std::array<uint64_t, (kSlab / kSmallest + 63) / 64> taken{};  // a bit per block; bits beyond the last block are set

  static constexpr size_t head() { return (sizeof(Slab) + kGranule - 1) / kGranule * kGranule; }
  static Slab* of(void* block) { return reinterpret_cast<Slab*>(uintptr_t(block) / kSlab * kSlab); }
  explicit Slab(size_t number) : number(number), places((kSlab - head()) / size_of(number)) {
    for (size_t i = places; i < taken.size() * 64; ++i) set(i);
    poison(at(0), kSlab - head());
  }
  char* at(size_t place) { return reinterpret_cast<char*>(this) + head() + place * size_of(number); }
  size_t place_of(void* block) { return size_t(static_cast<char*>(block) - at(0)) / size_of(number); }
  void set(size_t place) { taken[place / 64] |= uint64_t(1) << place % 64; }
  void clear(size_t place) { taken[place / 64] &= ~(uint64_t(1) << place % 64); }
  bool is_set(size_t place) const { return taken[place / 64] >> place % 64 & 1; }
  bool is_full() const { return used == places; }
  size_t quarter() const { return used * kQuarters / places; }
  void* take() {
    auto word = std::ranges::find_if(taken, [](uint64_t bits) { return ~bits != 0; });
    size_t place = size_t(word - taken.begin()) * 64 + size_t(std::countr_one(*word));
    set(place);
    ++used;
    return at(place);
  }
  void give_pages_back() {
    const uintptr_t page = uintptr_t(::sysconf(_SC_PAGESIZE));
    for (size_t place = 0; place < places; ++place) {
      size_t first = place;
      while (place < places && !is_set(place)) ++place;
      uintptr_t end = place < places ? uintptr_t(at(place)) : uintptr_t(this) + kSlab;
      uintptr_t from = (uintptr_t(at(first)) + page - 1) / page * page, to = end / page * page;
      if (from < to) (void)::madvise(reinterpret_cast<void*>(from), to - from, MADV_DONTNEED);
    }
  }
};

struct SlabPool::State {
  using WithAPlace = List<Slab, &Slab::with_a_place>;

  std::mutex mutex;
  std::array<std::array<WithAPlace, kQuarters>, kSizes> with_a_place;  // by size and by use
  List<Slab, &Slab::with_free_pages> with_free_pages;
  size_t with_free_pages_count = 0;
  WithAPlace unused;
  size_t unused_count = 0;
  std::vector<void*> untouched;  // unused slabs without pages
  PagePool pages;                // the larger blocks

  WithAPlace& list_of(const Slab& slab) { return with_a_place[slab.number][slab.quarter()]; }
  Slab* fresh_slab(size_t number);
  void* take(size_t number);
  void give(void* block);
};

// A region contains one slab less than its length, because it may be unaligned. Slabs that have pages already are used first.
SlabPool::Slab* SlabPool::State::fresh_slab(size_t number) {
  if (Slab* slab = unused.first) {
    unused.remove(slab), unused_count--;
    return new (slab) Slab(number);
  }
  if (untouched.empty()) {
    void* region = ::mmap(nullptr, kRegion, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (region == MAP_FAILED) region = std::pmr::null_memory_resource()->allocate(kRegion);  // which throws std::bad_alloc
    uintptr_t first = (uintptr_t(region) + kSlab - 1) / kSlab * kSlab, end = (uintptr_t(region) + kRegion) / kSlab * kSlab;
    for (uintptr_t slab = end; slab > first; slab -= kSlab) untouched.push_back(reinterpret_cast<void*>(slab - kSlab));
  }
  Slab* slab = new (untouched.back()) Slab(number);
  untouched.pop_back();
  return slab;
}

void* SlabPool::State::take(size_t number) {
  auto& lists = with_a_place[number];
  auto fullest = std::find_if(lists.rbegin(), lists.rend(), [](const WithAPlace& list) { return list.first != nullptr; });
  Slab* slab = fullest != lists.rend() ? fullest->first : fresh_slab(number);
  if (fullest != lists.rend()) fullest->remove(slab);
  void* block = slab->take();
  if (!slab->is_full()) list_of(*slab).push(slab);
  return block;
}

void SlabPool::State::give(void* block) {
  Slab* slab = Slab::of(block);
  if (!slab->is_full()) list_of(*slab).remove(slab);
  slab->clear(slab->place_of(block));
  slab->used--;
  poison(block, size_of(slab->number));
  if (slab->used > 0) {
    list_of(*slab).push(slab);
    if (!std::exchange(slab->may_have_free_pages, true)) with_free_pages.push(slab), with_free_pages_count++;
    return;
  }
  if (slab->may_have_free_pages) with_free_pages.remove(slab), with_free_pages_count--;
  unused.push(slab), unused_count++;
}

SlabPool::SlabPool() : state_(std::make_unique<State>()) {}
SlabPool::~SlabPool() = default;

SlabPool& SlabPool::of_process() {
  static SlabPool& pool = *new SlabPool;  // never destroyed: threads may outlive statics
  return pool;
}

SlabPool& SlabPool::of_lasting() {
  static SlabPool& pool = *new SlabPool;
  return pool;
}

void SlabPool::give_all_pages_back() {
  of_process().give_pages_back();
  of_lasting().give_pages_back();
}

void* SlabPool::take(size_t size) {
  if (size > kSlabbedMax) return state_->pages.take(size);
  std::lock_guard lock(state_->mutex);
  void* block = state_->take(number_of(size));
  unpoison(block, size);
  return block;
}

void SlabPool::give(void* block, size_t size) {
  if (size > kSlabbedMax) return state_->pages.give(block, (size + PagePool::kPage - 1) / PagePool::kPage * PagePool::kPage);
  std::lock_guard lock(state_->mutex);
  state_->give(block);
}

// Releases the lock during long operations.
void SlabPool::give_pages_back() {
  State& state = *state_;
  std::vector<void*> unused;
  size_t count = 0;  // slabs that are added meanwhile are left for the next call
  {
    std::lock_guard lock(state.mutex);
    unused.reserve(state.unused_count);
    for (Slab* slab = state.unused.first; slab; slab = slab->with_a_place.next) unused.push_back(slab);
    state.unused = {}, state.unused_count = 0;
    count = state.with_free_pages_count;
  }
  for (void* slab : unused) (void)::madvise(slab, kSlab, MADV_DONTNEED);
  {
    std::lock_guard lock(state.mutex);
    state.untouched.insert(state.untouched.end(), unused.begin(), unused.end());
  }
  for (; count > 0; --count) {
    std::lock_guard lock(state.mutex);
    Slab* slab = state.with_free_pages.first;
    if (!slab) break;
    state.with_free_pages.remove(slab), state.with_free_pages_count--;
    slab->may_have_free_pages = false;
    slab->give_pages_back();
  }
  state.pages.give_pages_back();
}

}  // namespace coracle::sys

// SPDX-License-Identifier: Apache-2.0
// A library for LD_PRELOAD that counts what the program allocates: in the file that ALLOCATIONS names stand two 64-bit numbers,
// the calls of malloc and its like, and the bytes that they asked for. Source: glibc's manual, "Replacing malloc"; the real
// functions have other names too, by which they are called here.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>

extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* old, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
}

namespace {

struct Counts {
  std::atomic<uint64_t> calls, bytes;
};
constinit Counts before_the_file{};
constinit std::atomic<Counts*> counts{&before_the_file};

void count(size_t bytes) {
  Counts& now = *counts.load(std::memory_order_relaxed);
  now.calls.fetch_add(1, std::memory_order_relaxed);
  now.bytes.fetch_add(bytes, std::memory_order_relaxed);
}

__attribute__((constructor)) void open_counts() {
  const char* path = std::getenv("ALLOCATIONS");
  int fd = path ? ::open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
  if (fd < 0) return;
  void* at = ::ftruncate(fd, sizeof(Counts)) == 0 ? ::mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                                                  : MAP_FAILED;
  ::close(fd);
  ::unsetenv("ALLOCATIONS");  // programs that this one starts are not counted
  if (at != MAP_FAILED) counts = static_cast<Counts*>(at);
}

}  // namespace

extern "C" {

void* malloc(size_t size) {
  count(size);
  return __libc_malloc(size);
}

void* calloc(size_t number, size_t size) {
  count(number * size);
  return __libc_calloc(number, size);
}

void* realloc(void* old, size_t size) {
  count(size);
  return __libc_realloc(old, size);
}

void* memalign(size_t alignment, size_t size) {
  count(size);
  return __libc_memalign(alignment, size);
}

void* aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

int posix_memalign(void** to, size_t alignment, size_t size) {
  void* at = memalign(alignment, size);
  if (!at) return ENOMEM;
  *to = at;
  return 0;
}
}

// SPDX-License-Identifier: Apache-2.0
// See memory.h. Source: mallopt(3), malloc_trim(3), madvise(2), dl_iterate_phdr(3), elf(5).
#include "runtime/sys/memory.h"

#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

#include "runtime/sys/slab_pool.h"

namespace coracle::sys {
namespace {

bool has_text_relocations(const dl_phdr_info& object) {
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object.dlpi_phdr[i];
    if (segment.p_type != PT_DYNAMIC) continue;
    for (auto* entry = reinterpret_cast<const ElfW(Dyn)*>(object.dlpi_addr + segment.p_vaddr); entry->d_tag != DT_NULL; ++entry)
      if (entry->d_tag == DT_TEXTREL || (entry->d_tag == DT_FLAGS && (entry->d_un.d_val & DF_TEXTREL))) return true;
  }
  return false;
}

// Read-only segments only contain bytes of the file: relocations, including RELRO, are in writable segments. The loader holds its
// lock meanwhile, so no library is unloaded.
int let_go_of_constants(dl_phdr_info* object, size_t, void*) {
  const bool of_kernel = object->dlpi_addr == ::getauxval(AT_SYSINFO_EHDR);  // the vDSO has no file
  if (of_kernel || has_text_relocations(*object)) return 0;
  const uintptr_t page = uintptr_t(::sysconf(_SC_PAGESIZE));
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W)) continue;
    uintptr_t from = object->dlpi_addr + segment.p_vaddr;
    uintptr_t begin = from / page * page, end = (from + segment.p_memsz) / page * page;  // whole pages: the last may be shared
    if (begin < end) (void)::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);  // a failure is harmless
  }
  return 0;
}

}  // namespace

void prefer_small_memory() {
  constexpr int kPiece = 128 * 1024;
  (void)::mallopt(M_ARENA_MAX, 2);
  (void)::mallopt(M_TRIM_THRESHOLD, kPiece);
  (void)::mallopt(M_MMAP_THRESHOLD, kPiece);
  if constexpr (sizeof(void*) == 4) {  // three gigabytes of addresses, of which each thread's stack would reserve 8 MiB
    constexpr size_t kStack = 2 << 20;
    pthread_attr_t attributes;
    if (::pthread_attr_init(&attributes) != 0) return;
    if (::pthread_attr_setstacksize(&attributes, kStack) == 0) (void)::pthread_setattr_default_np(&attributes);
    (void)::pthread_attr_destroy(&attributes);
  }
}

void give_memory_back() {
  (void)::malloc_trim(0);
  SlabPool::give_all_pages_back();
  (void)::dl_iterate_phdr(let_go_of_constants, nullptr);
}

}  // namespace coracle::sys

// SPDX-License-Identifier: Apache-2.0
// See shared_library.h.
#include "runtime/base/shared_library.h"

#include <dlfcn.h>

#include <cstring>

namespace coracle {

Result<SharedLibrary> SharedLibrary::load(const char* name) {
  // Never closed: its destructors run at exit. Lazy: to find all functions that the library and its own libraries call takes up
  // to half a millisecond.
  void* handle = ::dlopen(name, RTLD_LAZY | RTLD_LOCAL);
  if (!handle) return Error(Code::unavailable, std::string(name) + " cannot be loaded: " + ::dlerror());
  return SharedLibrary(name, handle);
}

Result<void> load_functions(const char* library, std::span<const LibraryFunction> functions) {
  const SharedLibrary loaded = TRY(SharedLibrary::load(library));
  for (const auto& [pointer, name] : functions) {
    void* address = TRY(loaded.address_of(name));
    std::memcpy(pointer, &address, sizeof address);
  }
  return {};
}

Result<void*> SharedLibrary::address_of(const char* name) const {
  void* address = ::dlsym(handle_, name);
  if (!address) return Error(Code::unavailable, std::string(name_) + " has no function " + name);
  return address;
}

}  // namespace coracle

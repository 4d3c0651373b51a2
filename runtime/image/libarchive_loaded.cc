// SPDX-License-Identifier: Apache-2.0
// See libarchive.h. For programs that rarely need libarchive.
#include "runtime/base/shared_library.h"
#include "runtime/image/libarchive.h"

namespace coracle {

#define CORACLE_DEFINE(name) decltype(&::name) name = nullptr;
CORACLE_ARCHIVE_FUNCTIONS(CORACLE_DEFINE)
#undef CORACLE_DEFINE

namespace {

Result<void> find_functions() {
  const SharedLibrary library = TRY(SharedLibrary::load("libarchive.so.13"));
#define CORACLE_FIND(name) TRY(library.find(name, #name));
  CORACLE_ARCHIVE_FUNCTIONS(CORACLE_FIND)
#undef CORACLE_FIND
  return {};
}

}  // namespace

Result<void> load_libarchive() {
  static const Result<void> loaded = find_functions();
  if (!loaded) return loaded.error();
  return {};
}

}  // namespace coracle

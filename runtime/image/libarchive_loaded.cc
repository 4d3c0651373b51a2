// SPDX-License-Identifier: Apache-2.0
// See libarchive.h. For programs that rarely need libarchive.
#include "runtime/base/shared_library.h"
#include "runtime/image/libarchive.h"

namespace coracle {

#define CORACLE_DEFINE(name) decltype(&::name) name = nullptr;
CORACLE_ARCHIVE_FUNCTIONS(CORACLE_DEFINE)
#undef CORACLE_DEFINE

Result<void> load_libarchive() {
  static constexpr LibraryFunction kFunctions[] = {CORACLE_ARCHIVE_FUNCTIONS(CORACLE_LIBRARY_FUNCTION)};
  static const Result<void> loaded = load_functions("libarchive.so.13", kFunctions);
  if (!loaded) return loaded.error();
  return {};
}

}  // namespace coracle

// SPDX-License-Identifier: Apache-2.0
// See libcrypto.h.
#include "runtime/base/libcrypto.h"

#include "runtime/base/shared_library.h"

namespace coracle {

#define CORACLE_DEFINE(name) decltype(&::name) name = nullptr;
CORACLE_CRYPTO_FUNCTIONS(CORACLE_DEFINE)
#undef CORACLE_DEFINE

Result<void> load_libcrypto() {
  static constexpr LibraryFunction kFunctions[] = {CORACLE_CRYPTO_FUNCTIONS(CORACLE_LIBRARY_FUNCTION)};
  static const Result<void> loaded = load_functions("libcrypto.so.3", kFunctions);
  if (!loaded) return loaded.error();
  return {};
}

}  // namespace coracle

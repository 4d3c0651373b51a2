// SPDX-License-Identifier: Apache-2.0
// See libcrypto.h.
#include "runtime/base/libcrypto.h"

#include "runtime/base/shared_library.h"

namespace coracle {

#define CORACLE_DEFINE(name) decltype(&::name) name = nullptr;
CORACLE_CRYPTO_FUNCTIONS(CORACLE_DEFINE)
#undef CORACLE_DEFINE

namespace {

Result<void> find_functions() {
  const SharedLibrary library = TRY(SharedLibrary::load("libcrypto.so.3"));
#define CORACLE_FIND(name) TRY(library.find(name, #name));
  CORACLE_CRYPTO_FUNCTIONS(CORACLE_FIND)
#undef CORACLE_FIND
  return {};
}

}  // namespace

Result<void> load_libcrypto() {
  static const Result<void> loaded = find_functions();
  if (!loaded) return loaded.error();
  return {};
}

}  // namespace coracle

// SPDX-License-Identifier: Apache-2.0
// See curl.h.
#include "store/client/curl.h"

#include "runtime/base/shared_library.h"

namespace coracle {

#define CORACLE_DEFINE(name) decltype(&::name) name = nullptr;
CORACLE_CURL_FUNCTIONS(CORACLE_DEFINE)
#undef CORACLE_DEFINE

namespace {

Result<void> load_and_initialize() {
  const SharedLibrary library = TRY(SharedLibrary::load("libcurl.so.4"));
#define CORACLE_FIND(name) TRY(library.find(name, #name));
  CORACLE_CURL_FUNCTIONS(CORACLE_FIND)
#undef CORACLE_FIND
  if (CURLcode code = curl_global_init(CURL_GLOBAL_DEFAULT); code != CURLE_OK)
    return Error(Code::unavailable, std::string("libcurl cannot start: ") + curl_easy_strerror(code));
  return {};
}

}  // namespace

Result<void> load_curl() {
  static const Result<void> loaded = load_and_initialize();
  if (!loaded) return loaded.error();
  return {};
}

}  // namespace coracle

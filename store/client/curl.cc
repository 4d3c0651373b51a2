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
  static constexpr LibraryFunction kFunctions[] = {CORACLE_CURL_FUNCTIONS(CORACLE_LIBRARY_FUNCTION)};
  TRY(load_functions("libcurl.so.4", kFunctions));
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

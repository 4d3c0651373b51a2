// SPDX-License-Identifier: Apache-2.0
// libcurl, which is loaded at its first use: with the libraries that it needs, it takes most of the time that a short command of
// coraclectl runs. In namespace coracle, libcurl's names mean the pointers below, so calls are written as with a linked library.
// A function that is missing in the list does not link.
//
// No program needs libcurl because of this, so dpkg-shlibdeps does not see it. The Debian package depends on it all the same:
// coracle-image, which is in the package too, links it.
#pragma once

#include <curl/curl.h>

#include "runtime/base/result.h"

#define CORACLE_CURL_FUNCTIONS(X) \
  X(curl_easy_cleanup)            \
  X(curl_easy_getinfo)            \
  X(curl_easy_init)               \
  X(curl_easy_perform)            \
  X(curl_easy_recv)               \
  X(curl_easy_reset)              \
  X(curl_easy_send)               \
  X(curl_easy_setopt)             \
  X(curl_easy_strerror)           \
  X(curl_global_init)             \
  X(curl_multi_add_handle)        \
  X(curl_multi_cleanup)           \
  X(curl_multi_info_read)         \
  X(curl_multi_init)              \
  X(curl_multi_perform)           \
  X(curl_multi_poll)              \
  X(curl_multi_remove_handle)     \
  X(curl_multi_wakeup)            \
  X(curl_slist_append)            \
  X(curl_slist_free_all)

namespace coracle {

#define CORACLE_DECLARE(name) extern decltype(&::name) name;
CORACLE_CURL_FUNCTIONS(CORACLE_DECLARE)
#undef CORACLE_DECLARE

// Loads and initializes libcurl, the first time; before that, its functions must not be called. Errors: unavailable.
// Thread-safe.
Result<void> load_curl();

}  // namespace coracle

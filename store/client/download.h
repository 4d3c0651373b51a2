// SPDX-License-Identifier: Apache-2.0
// What a URL holds. Apart from http.h, because it is about no API server: nothing of ours is sent, and redirections are followed.
#pragma once

#include <cstddef>
#include <string>

#include "runtime/base/result.h"

namespace coracle {

// The body at an http or https URL, through the environment's proxy (proxy.h), from servers whose certificates the system trusts.
// Blocks. Errors: not_found for status 404, unavailable for another one and for a server that cannot be reached or trusted,
// worded as kubectl's; too_large; bad_request for no URL.
Result<std::string> download(const std::string& url, size_t bytes_max);

}  // namespace coracle

// SPDX-License-Identifier: Apache-2.0
// Archives between a client and the node: through a pipe as they arrive, and as they are written. Nothing is kept in memory.
#pragma once

#include <functional>

#include "daemon/api/handlers.h"

namespace coracle::api {

// `read` gets the request's body to its end, on a thread of its own, and makes the answer. Errors: its own, before those of the
// transfer.
Result<json::value> receive_archive(Call& call, const std::function<Result<json::value>(const Fd& archive)>& read);

// What `write` writes, on a thread of its own, is the answer, of this type. An archive that breaks off has no end: its client
// sees that it is not whole; the log says why (`what` broke off). Errors: those of `write` before its first byte.
Result<void> send_archive(Call& call, const char* type, const char* what,
                          const std::function<Result<void>(const Fd& archive)>& write);

}  // namespace coracle::api

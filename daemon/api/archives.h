// SPDX-License-Identifier: Apache-2.0
// Streams archives between a client and the node through a pipe. Nothing is buffered as a whole.
#pragma once

#include <functional>

#include "daemon/api/handlers.h"

namespace coracle::api {

// Passes the request body through a pipe to `read`, which runs on its own thread and returns the response. Errors: those of
// `read`, else those of the transfer.
Result<json::value> receive_archive(Call& call, const std::function<Result<json::value>(const Fd& archive)>& read);

// Responds with what `write` writes to a pipe on its own thread, with the content type `type`. If the archive breaks off, the
// chunked response has no end, so the client sees that it is incomplete; the log has the reason ("`what` was interrupted").
// Errors: those of `write` before its first byte.
Result<void> send_archive(Call& call, const char* type, const char* what,
                          const std::function<Result<void>(const Fd& archive)>& write);

}  // namespace coracle::api

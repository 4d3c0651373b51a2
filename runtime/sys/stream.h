// SPDX-License-Identifier: Apache-2.0
// Clients of Unix stream sockets, with a deadline for every wait. Source: unix(7).
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"

namespace coracle::sys {

// A connection to the listener at `path`. Errors: too_large for a long path; errno's.
Result<Fd> connect_stream(const std::string& path);

using Deadline = std::chrono::steady_clock::time_point;
// Sends everything. Errors: timeout; the peer has closed the connection.
Result<void> send_all(const Fd& socket, std::string_view bytes, Deadline deadline);
// Receives available bytes, at least one and at most `max`; "": end of file. Errors: timeout.
Result<std::string> receive(const Fd& socket, size_t max, Deadline deadline);

}  // namespace coracle::sys

// SPDX-License-Identifier: Apache-2.0
// Stream sockets of this machine, as their client, with an end to every wait. Source: unix(7).
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"

namespace coracle::sys {

// Connected to who listens at `path`.
Result<Fd> connect_stream(const std::string& path);

using Deadline = std::chrono::steady_clock::time_point;
// All of it. Errors: timeout; the other side is gone.
Result<void> send_all(const Fd& socket, std::string_view bytes, Deadline deadline);
// What has come, one byte at least and `max` at most; "": the other side has ended. Errors: timeout.
Result<std::string> receive(const Fd& socket, size_t max, Deadline deadline);

}  // namespace coracle::sys

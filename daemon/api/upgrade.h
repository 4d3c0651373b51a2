// SPDX-License-Identifier: Apache-2.0
// Upgrades a request to a stream between a client and a pod: authorization and protocol negotiation. For exec, attach and
// port-forward. Source: apimachinery util/httpstream (negotiation, texts).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/api/call.h"

namespace coracle::api {

constexpr std::chrono::seconds kStreamCreation{30};  // time limit of a client for opening its streams
constexpr std::chrono::seconds kGoodbye{5};          // time limit of a client for disconnecting after the end

// Checks the verb "create" for a stream that is opened by a GET (a WebSocket), because "get" permits only reading. Errors:
// forbidden.
Result<void> may_open(Call& call);

bool asks_for_spdy(const Head& head);
// Accepts a SPDY upgrade with the client's first protocol that is in `ours`, and returns that protocol. nullopt: there is none,
// and the error response has been made. Errors: bad_request, unavailable.
Result<std::optional<std::string>> accept_spdy(Call& call, const std::vector<std::string_view>& ours);

}  // namespace coracle::api

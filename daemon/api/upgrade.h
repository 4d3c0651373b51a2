// SPDX-License-Identifier: Apache-2.0
// How a request becomes a stream between a client and a pod: who may, and which protocol it will be. For exec, attach and
// port-forward. Source: apimachinery util/httpstream (negotiation and its words).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/api/call.h"

namespace coracle::api {

constexpr std::chrono::seconds kStreamCreation{30};  // for a client to open the streams that it needs
constexpr std::chrono::seconds kGoodbye{5};          // for a client to leave after it was told the end

// A WebSocket is opened by GET, which reads; what it opens does not. Errors: forbidden, for who may not "create" it.
Result<void> may_open(Call& call);

bool asks_for_spdy(const Head& head);
// Answers a request for SPDY with the first protocol of the client's that is one of `ours`, and gives it; nothing: the answer was
// made, and says that there is none. Errors: bad_request, unavailable.
Result<std::optional<std::string>> accept_spdy(Call& call, const std::vector<std::string_view>& ours);

}  // namespace coracle::api

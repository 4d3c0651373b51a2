// SPDX-License-Identifier: Apache-2.0
// Relay: one exchange handed on to a target, both ways at once and in pieces: whatever its size, a body takes a few buffers.
//   client ──head, body──▶ Upstream ──▶ target        (the body by a thread of its own)
//   client ◀──head, body, links rewritten── Inlet ◀── target
//   client ◀──────── bytes ────────▶ target           (once both agreed on another protocol)
// A target that breaks off in the middle of its answer breaks it off for the client, too; a client that leaves ends it all.
// Source: apimachinery util/proxy (UpgradeAwareHandler); Go's ReverseProxy.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "daemon/api/http.h"
#include "daemon/api/proxy/headers.h"
#include "daemon/api/proxy/target.h"

namespace coracle::api {

// Blocks until all is said. `more`: headers that this server adds to the answer. Errors, of which the client is still to be told
// (unless the exchange was taken): unavailable ("error trying to reach service: …"), internal (an upgrade that came to nothing),
// bad_request (its body), cancelled (it left).
Result<void> relay(Exchange& exchange, const Target& target, const Passage& passage,
                   const std::vector<std::pair<std::string, std::string>>& more);

}  // namespace coracle::api

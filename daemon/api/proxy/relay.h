// SPDX-License-Identifier: Apache-2.0
// Relay: forwards one exchange to a target, in both directions at once and in pieces. Bodies of any size use a few buffers.
//   client ──head, body──▶ Upstream ──▶ target        (a separate thread sends the body)
//   client ◀──head, body, links rewritten── ResponseReader ◀── target
//   client ◀──────── bytes ────────▶ target           (after a protocol upgrade)
// If the target's response breaks off, the response to the client breaks off too. If the client disconnects, the exchange ends.
// Source: apimachinery util/proxy (UpgradeAwareHandler); Go's ReverseProxy.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "daemon/api/http.h"
#include "daemon/api/proxy/headers.h"
#include "daemon/api/proxy/target.h"

namespace coracle::api {

// Blocks until the exchange is complete. `more`: headers that this server adds to the response. Errors, which the caller reports
// to the client unless the exchange was taken over: unavailable ("error trying to reach service: …"), internal (failed upgrade),
// bad_request (the client's body), cancelled (the client disconnected).
Result<void> relay(Exchange& exchange, const Target& target, const ProxiedRequest& proxied,
                   const std::vector<std::pair<std::string, std::string>>& more);

}  // namespace coracle::api

// SPDX-License-Identifier: Apache-2.0
// The two transports of exec and attach. Both functions return when the client has disconnected.
#pragma once

#include "daemon/api/call.h"
#include "daemon/api/websocket.h"

namespace coracle::api {

// WebSocket messages with channels. Source: apimachinery util/remotecommand; KEP-4006 (version 5).
void run_exec(Call& call, WebSocket& socket, const ExecRequest& request);  // exec_websocket.cc
// SPDY streams with the remotecommand protocol in `version` (1 to 4). The connection has been upgraded.
void run_exec(Call& call, int version, const ExecRequest& request);  // exec_spdy.cc

}  // namespace coracle::api

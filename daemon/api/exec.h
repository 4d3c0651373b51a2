// SPDX-License-Identifier: Apache-2.0
// The two ways in which an exec or attach reaches its client. Both return when the client has left.
#pragma once

#include "daemon/api/call.h"
#include "daemon/api/websocket.h"

namespace coracle::api {

// By channels in messages. Source: apimachinery util/remotecommand; KEP-4006 (version 5).
void run_exec(Call& call, WebSocket& socket, const ExecRequest& request);  // exec_websocket.cc
// By streams of SPDY, the remotecommand protocol in `version` (1 to 4); the connection has been upgraded.
void run_exec(Call& call, int version, const ExecRequest& request);  // exec_spdy.cc

}  // namespace coracle::api

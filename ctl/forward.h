// SPDX-License-Identifier: Apache-2.0
// Copies between one local connection and a pod's port, over a WebSocket of its own, by channels:
//   local ──data (0), end of data (255)──▶ server        server ──data (0), error (1), end of data (255)──▶ local
// Source: Kubernetes port-forward over WebSocket; version 5 of the protocol adds the end of data, as for exec.
#pragma once

#include <string>
#include <string_view>

#include "ctl/session.h"
#include "runtime/base/fd.h"

namespace coracle::ctl {

// Blocks until both directions have ended or one side has closed the connection. `local` is non-blocking. Errors: the server's
// error message; unavailable if the connection to the server breaks.
Result<void> tie(Session::Socket& socket, Fd local);

// ---- port arguments ----

struct PortMapping {
  uint16_t local = 0;       // 0: any free port
  bool same_local = false;  // use the number of the remote port
  std::string remote;       // a number or a name
};
// "8080:80", "80", ":80", "8080:http". Errors: bad_request.
Result<PortMapping> parse_mapping(std::string_view text);
// The pod's port that `remote` refers to. With a `service` (may be null), `remote` is one of its ports. Errors: bad_request.
Result<uint16_t> pod_port(const json::value& pod, const json::value* service, const std::string& remote);

}  // namespace coracle::ctl

// SPDX-License-Identifier: Apache-2.0
// One local connection and one to a port of a pod, tied together over a WebSocket of its own, by channels:
//   local ──data (0), end of data (255)──▶ server        server ──data (0), why not (1), end of data (255)──▶ local
// Source: Kubernetes port-forward over WebSocket; version 5 adds the ends, as it does to exec.
#pragma once

#include <string>
#include <string_view>

#include "ctl/session.h"
#include "runtime/base/fd.h"

namespace coracle::ctl {

// Until both sides have ended, or one has left. `local` does not block. Errors: what the server says why it cannot be;
// unavailable when the connection to it breaks.
Result<void> tie(Session::Socket& socket, Fd local);

// ---- which port is meant ----

struct PortMapping {
  uint16_t local = 0;       // 0: any that is free
  bool same_local = false;  // as the remote one
  std::string remote;       // a number or a name
};
// "8080:80", "80", ":80", "8080:http". Errors: bad_request.
Result<PortMapping> parse_mapping(std::string_view text);
// The port of the pod's that `remote` names, of itself or, when `service` is not null, through that. Errors: bad_request.
Result<uint16_t> pod_port(const json::value& pod, const json::value* service, const std::string& remote);

}  // namespace coracle::ctl

// SPDX-License-Identifier: Apache-2.0
// Connects to a port on a pod's loopback interface, for port-forward. Only the socket is created in the pod's network namespace;
// no thread of the daemon stays there.
#pragma once

#include "daemon/node/probe/connection.h"

namespace coracle::node {

// Tries 127.0.0.1, then ::1. The returned socket is non-blocking. Blocks until `context`'s deadline. Errors: unavailable (nothing
// listens), timeout, cancelled, and errno's.
Result<Fd> connect_loopback(const Fd& network_namespace, uint16_t port, const CallContext& context);

}  // namespace coracle::node

// SPDX-License-Identifier: Apache-2.0
// A connection to a port on a pod's own loopback, as port-forward has them. The socket lives in the pod's network namespace;
// no thread of ours has to.
#pragma once

#include "daemon/node/connection.h"

namespace coracle::node {

// Connects to 127.0.0.1, then to ::1. The socket does not block. Blocks until `patience` is over. Errors: unavailable (nobody
// listens), timeout, cancelled, and what the kernel said.
Result<Fd> connect_loopback(const Fd& network_namespace, uint16_t port, const Patience& patience);

}  // namespace coracle::node

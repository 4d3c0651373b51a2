// SPDX-License-Identifier: Apache-2.0
// Resolver: the addresses of a host that may be a name. The C library's lookup of a name cannot be ended, and lasts as long as
// name servers are silent: it has a thread of its own, and who waits for it does so no longer than he likes.
#pragma once

#include <netdb.h>

#include <functional>
#include <memory>
#include <string>

#include "daemon/node/connection.h"
#include "daemon/node/task_pool.h"

namespace coracle::node {

class Resolver {
 public:
  using Ask = std::function<Result<Addresses>(const std::string& host, uint16_t port)>;  // blocks
  // `ask` looks names up; absent: the C library does.
  explicit Resolver(Ask ask = nullptr);
  // Blocks, for a name only. `asker`: whose lookups hold up nobody else's. Thread-safe. Errors: timeout, cancelled, unavailable.
  Result<Addresses> find(const std::string& asker, const std::string& host, uint16_t port, const Patience& patience);

 private:
  const Ask ask_;
  TaskPool lookups_;
};

}  // namespace coracle::node

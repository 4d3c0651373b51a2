// SPDX-License-Identifier: Apache-2.0
// Resolver: the addresses of a host that may be a name. The C library's lookup of a name cannot be ended, and lasts as long as
// name servers are silent. So each has a thread of its own, which nobody waits for longer than until the caller's deadline: it
// may outlive the resolver.
#pragma once

#include <netdb.h>

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "daemon/node/connection.h"
#include "runtime/base/guarded.h"

namespace coracle::node {

class Resolver {
 public:
  using Ask = std::function<Result<Addresses>(const std::string& host, uint16_t port)>;  // blocks
  // `ask` looks names up; absent: the C library does.
  explicit Resolver(Ask ask = nullptr);
  // Blocks until the deadline at most, for a name only. `asker`: at most 8 lookups of one last at once, and 64 of all; more wait.
  // Thread-safe. Errors: timeout, cancelled, unavailable.
  Result<Addresses> find(const std::string& asker, const std::string& host, uint16_t port, const Patience& patience);

 private:
  struct Lasting {  // lookups
    size_t all = 0;
    std::map<std::string, size_t> by_asker;
  };
  struct Shared {  // with the threads
    Ask ask;
    Guarded<Lasting> lasting;
  };
  class Place;
  std::shared_ptr<Place> take_place(const std::string& asker, const Patience& patience);

  const std::shared_ptr<Shared> shared_;
};

}  // namespace coracle::node

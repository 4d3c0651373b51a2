// SPDX-License-Identifier: Apache-2.0
// Resolver: looks up the addresses of a host. The C library's lookup cannot be cancelled and blocks as long as name servers do
// not answer. So each lookup runs on its own thread, which may outlive the resolver, and callers wait for it until their deadline
// only.
#pragma once

#include <netdb.h>

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "daemon/node/probe/connection.h"
#include "runtime/base/guarded.h"

namespace coracle::node {

class Resolver {
 public:
  using Ask = std::function<Result<Addresses>(const std::string& host, uint16_t port)>;  // blocks
  // `ask` looks up names; absent: the C library does.
  explicit Resolver(Ask ask = nullptr);
  // Blocks until the deadline at most, and only for a name. At most 8 lookups of one `asker` and 64 in total run at once; further
  // ones wait. Thread-safe. Errors: timeout, cancelled, unavailable.
  Result<Addresses> find(const std::string& asker, const std::string& host, uint16_t port, const CallContext& context);

 private:
  struct Lasting {  // running lookups
    size_t all = 0;
    std::map<std::string, size_t> by_asker;
  };
  struct Shared {  // shared with the threads
    Ask ask;
    Guarded<Lasting> lasting;
  };
  class Place;
  std::shared_ptr<Place> take_place(const std::string& asker, const CallContext& context);

  const std::shared_ptr<Shared> shared_;
};

}  // namespace coracle::node

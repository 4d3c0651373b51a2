// SPDX-License-Identifier: Apache-2.0
// LocalHttp: HTTP/1.1 with this machine's daemon over its local socket (local_socket.h). It keeps idle connections. Thread-safe.
// Source: RFC 9112.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/fd.h"
#include "runtime/base/guarded.h"
#include "store/client/byte_connection.h"
#include "store/client/exchange.h"

namespace coracle {

class LocalHttp {
 public:
  explicit LocalHttp(std::string path) : path_(std::move(path)) {}

  // A connection of its own. Null: nobody listens there, we may not use it, or it is neither root's nor our own;
  // the network remains.
  std::unique_ptr<ByteConnection> connect() const;

  struct Request {
    std::string head;                      // with its empty line
    std::string_view body;                 // of exchange.source instead, in chunks, if there is one
    bool is_head = false;                  // its response has no body
    std::chrono::milliseconds timeout{0};  // of the whole exchange; 0: none
  };
  // Sends a request and fills in the response. Blocks. Nothing: as null above; nothing was sent. Errors: timeout; unavailable if
  // the connection breaks off or what comes is no HTTP; of exchange.stop, exchange.sink_ended and exchange.too_large there is
  // none.
  std::optional<Result<void>> run(const Request& request, Exchange& exchange);

 private:
  Fd take_idle();
  const std::string path_;
  Guarded<std::vector<Fd>> idle_;
};

}  // namespace coracle

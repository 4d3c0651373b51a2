// SPDX-License-Identifier: Apache-2.0
// An HTTP client for one API server, over libcurl or this machine's local socket: requests, streamed responses, uploads, and
// WebSocket upgrades. It sends
// credentials and does not interpret objects. It keeps idle connections for later requests. Thread-safe: each call uses its own
// connection while it runs. Every call blocks.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/result.h"
#include "store/client/kubeconfig.h"

namespace coracle {

struct HttpRequest {
  std::string method = "GET";
  std::string path;                                        // "/api/v1/pods"; already encoded
  std::vector<std::pair<std::string, std::string>> query;  // percent-encoded by the client
  std::string body;
  std::string content_type = "application/json";  // with a body
  std::string accept = "application/json";
  std::chrono::milliseconds timeout{0};  // of the whole exchange; 0: none
};

struct HttpAnswer {
  int status = 0;
  std::string reason;  // "Not Found"
  std::string body;    // of a streamed response only if the status is not 2xx
  std::string content_type;
  int retry_after_seconds = 0;
  std::vector<std::string> warnings;  // texts of Warning headers
};

class Http {
 public:
  // Errors: invalid for unreadable certificates or keys. Does not connect.
  static Result<std::unique_ptr<Http>> make(ServerAccess access);
  ~Http();
  const ServerAccess& access() const;

  // Errors of all calls: unavailable if the server cannot be reached or its certificate is not trusted; timeout; cancelled. Every
  // HTTP status is a response, not an error.
  Result<HttpAnswer> send(const HttpRequest& request);
  // Passes the body of a 2xx response to `sink` as it arrives, until it ends, `sink` returns false or a stop is requested (the
  // last two are no errors). Calls `begun` after the headers of a 2xx response. A stop request interrupts at once.
  Result<HttpAnswer> stream(const HttpRequest& request, const std::function<bool(std::string_view)>& sink,
                            std::stop_token stop = {}, const std::function<void()>& begun = {});
  // As stream, with a request body from `source`, which fills a buffer and returns the size, 0 at the end.
  Result<HttpAnswer> upload(const HttpRequest& request, const std::function<size_t(char*, size_t)>& source,
                            const std::function<bool(std::string_view)>& sink);

  class Connection {  // the TLS byte stream after the upgrade
   public:
    virtual ~Connection() = default;
    virtual int fd() const = 0;  // readable: call read
    // Does not block; "": no data now. Errors: unavailable if closed.
    virtual Result<std::string> read() = 0;
    virtual bool has_more() const = 0;  // the last read() was full: more data may be buffered, which poll(2) does not report
    virtual Result<void> write(std::string_view bytes) = 0;  // blocks until everything is sent
    // Does not block; returns the number of bytes sent, 0 if fd() is not writable. The unsent rest must be passed next, from the
    // same memory. Errors: unavailable.
    virtual Result<size_t> write_some(std::string_view bytes) = 0;
  };
  // A connection of its own, encrypted as the kubeconfig says if it is not the local socket, for requests that the caller writes
  // himself, with the header lines that identity() gives. Errors: those of send.
  Result<std::unique_ptr<Connection>> connect();
  // "Authorization: Bearer …", and whom we act as. Errors: those of a credential plugin; invalid for a value with a line break.
  Result<std::vector<std::string>> identity();
  // A WebSocket upgrade with the subprotocol. Errors: those of send; the server's Status if it refuses.
  Result<std::unique_ptr<Connection>> upgrade(const HttpRequest& request, std::string_view protocol);

 private:
  struct State;
  explicit Http(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace coracle

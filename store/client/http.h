// SPDX-License-Identifier: Apache-2.0
// HTTP to one API server, over libcurl: requests, answers that stream, uploads, and connections taken over for WebSocket.
// Carries credentials; knows nothing of objects. Keeps idle connections for the next request.
// Thread-safe: each call uses a connection of its own while it runs. Every call blocks.
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
  std::vector<std::pair<std::string, std::string>> query;  // encoded here
  std::string body;
  std::string content_type = "application/json";  // with a body
  std::string accept = "application/json";
  std::chrono::milliseconds timeout{0};  // of the whole exchange; 0 = none
};

struct HttpAnswer {
  int status = 0;
  std::string body;  // of a streamed answer only when status is not 2xx
  std::string content_type;
  int retry_after_seconds = 0;
  std::vector<std::string> warnings;  // texts of Warning headers
};

class Http {
 public:
  // Errors: invalid for certificates or keys that cannot be read. Does not connect.
  static Result<std::unique_ptr<Http>> make(ServerAccess access);
  ~Http();
  const ServerAccess& access() const;

  // Errors of all: unavailable when the server cannot be reached or trusted, timeout, cancelled. Any HTTP status is an answer.
  Result<HttpAnswer> send(const HttpRequest& request);
  // Hands a 2xx answer's body over as it comes, until it ends, `sink` returns false or stop is requested (both: no error).
  // `begun` is called once the head of a 2xx answer is there. A stop interrupts at once.
  Result<HttpAnswer> stream(const HttpRequest& request, const std::function<bool(std::string_view)>& sink,
                            std::stop_token stop = {}, const std::function<void()>& begun = {});
  // As stream, with a body that `source` gives piece by piece (it fills a buffer, and returns 0 at its end).
  Result<HttpAnswer> upload(const HttpRequest& request, const std::function<size_t(char*, size_t)>& source,
                            const std::function<bool(std::string_view)>& sink);

  class Connection {  // bytes over TLS, once HTTP has stepped aside
   public:
    virtual ~Connection() = default;
    virtual int fd() const = 0;  // readable: call read
    // Does not block; "" = nothing now. Errors: unavailable when closed.
    virtual Result<std::string> read() = 0;
    virtual bool has_more() const = 0;  // read() gave all it may at once: there may be more, which no poll will tell
    virtual Result<void> write(std::string_view bytes) = 0;  // blocks until all is sent
    // Does not block; how many bytes were sent, 0 when fd() is not writable. What was not sent has to be sent next, from the
    // same place in memory. Errors: unavailable.
    virtual Result<size_t> write_some(std::string_view bytes) = 0;
  };
  // A WebSocket upgrade with the subprotocol. Errors: as send; the answer's Status where the server refused.
  Result<std::unique_ptr<Connection>> upgrade(const HttpRequest& request, std::string_view protocol);

 private:
  struct State;
  explicit Http(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace coracle

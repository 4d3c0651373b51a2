// SPDX-License-Identifier: Apache-2.0
// Upstream: the connection to a proxied server, plain or TLS. The socket is non-blocking: each wait also watches the client, so
// that no thread waits for a response that is no longer needed. One thread may read while another writes. Error texts are those
// of Go's net package, which Kubernetes passes on. Source: tcp(7), openssl SSL_set_mode(3).
#pragma once

#include <openssl/ssl.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "daemon/api/proxy/target.h"
#include "runtime/base/fd.h"
#include "runtime/base/result.h"

namespace coracle::api {

// Time limits of connect and of the TLS handshake. Source: Go net, net/http.
constexpr std::chrono::seconds kDialTime{30}, kGreetTime{10};

class CancelCheck {  // Cancels a wait.
 public:
  virtual ~CancelCheck() = default;
  virtual int fd() const = 0;  // when it is readable, stirred() is called; -1: there is nothing to watch
  virtual bool stirred() = 0;  // true: cancel the wait
};

class Upstream {
 public:
  // Blocks. Errors: unavailable ("dial tcp 10.0.0.1:80: connect: connection refused"), cancelled.
  static Result<std::unique_ptr<Upstream>> open(const Target& target, CancelCheck& cancel);

  // Blocks until there is at least one byte; 0: the other side has closed. Errors: unavailable, cancelled.
  Result<size_t> read(char* into, size_t size, CancelCheck& cancel);
  // Blocks until all bytes are written, until the peer of the socket `giver`, the source of the bytes, disconnects, or until
  // shut_down(). Errors: unavailable, cancelled.
  Result<void> write(std::string_view bytes, const Fd& giver);
  void shut_down() { sys::shut_down(socket_); }  // wakes blocked reads and writes

 private:
  struct Attempt {      // the result of one non-blocking call
    ssize_t count = 0;  // -1: it would block
    bool wants_read = false, wants_write = false;
  };
  using Tls = std::unique_ptr<SSL, void (*)(SSL*)>;
  explicit Upstream(Fd socket) : socket_(std::move(socket)), tls_(nullptr, SSL_free) {}
  Result<void> greet(CancelCheck& cancel);
  Result<Attempt> try_read(char* into, size_t size);
  Result<Attempt> try_write(std::string_view bytes);
  Result<Attempt> after(int outcome, std::string_view cut);

  Fd socket_;
  Tls tls_;
  std::mutex tls_mutex_;  // held around each SSL call; never held while waiting
};

}  // namespace coracle::api

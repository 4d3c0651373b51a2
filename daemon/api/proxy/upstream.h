// SPDX-License-Identifier: Apache-2.0
// Upstream: the connection to what a request is handed on to, plain or TLS. Non-blocking underneath; whoever reads also listens
// for who wants to give up, so that nobody waits for an answer that nobody wants any more.
// One thread may read while another writes. Errors are told in the words of Go's net package, which Kubernetes passes on.
// Source: tcp(7), openssl SSL_set_mode(3).
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

constexpr std::chrono::seconds kDialTime{30}, kGreetTime{10};  // to connect, and to agree on TLS. Source: Go net, net/http

class GivesUp {  // Says whether what is waited for is still wanted.
 public:
  virtual ~GivesUp() = default;
  virtual int fd() const = 0;  // readable: ask stirred(); -1: there is nothing to ask
  virtual bool stirred() = 0;  // true: give up
};

class Upstream {
 public:
  // Blocks. Errors: unavailable ("dial tcp 10.0.0.1:80: connect: connection refused"), cancelled.
  static Result<std::unique_ptr<Upstream>> open(const Target& target, GivesUp& wish);

  // Blocks until there is a byte; 0: the other side has ended. Errors: unavailable, cancelled.
  Result<size_t> read(char* into, size_t size, GivesUp& wish);
  // Blocks until all of it is taken, `giver`, whose bytes they are, has left, or shut_down(). Errors: unavailable, cancelled.
  Result<void> write(std::string_view bytes, const Fd& giver);
  void shut_down() { sys::shut_down(socket_); }  // wakes who reads and who writes

 private:
  struct Attempt {      // one try of a call that does not wait
    ssize_t count = 0;  // -1: it would have to wait
    bool wants_read = false, wants_write = false;
  };
  using Tls = std::unique_ptr<SSL, void (*)(SSL*)>;
  explicit Upstream(Fd socket) : socket_(std::move(socket)), tls_(nullptr, SSL_free) {}
  Result<void> greet(GivesUp& wish);
  Result<Attempt> try_read(char* into, size_t size);
  Result<Attempt> try_write(std::string_view bytes);
  Result<Attempt> after(int outcome, std::string_view cut);

  Fd socket_;
  Tls tls_;
  std::mutex tls_mutex_;  // around each SSL call; never held while waiting
};

}  // namespace coracle::api

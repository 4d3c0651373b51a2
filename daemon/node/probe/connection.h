// SPDX-License-Identifier: Apache-2.0
// A connection to a pod for one probe or hook: TCP, or TLS without verification, with one deadline for all of it. It does not use
// libcurl, because libcurl's forty libraries would take more memory than the rest of the daemon.
#pragma once

#include <openssl/ssl.h>

#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"

struct addrinfo;

namespace coracle::node {

struct CallContext {
  std::chrono::steady_clock::time_point deadline;
  std::stop_token stop;
};

using Addresses = std::shared_ptr<const addrinfo>;  // addresses of one host, the preferred one first
// See Resolver::find.
using AddressLookup = std::function<Result<Addresses>(const std::string& host, uint16_t port, const CallContext& context)>;

// "10.0.0.1:80", "[::1]:80"
std::string host_and_port(const std::string& host, uint16_t port);

class Connection {
 public:
  // `host` is an address or a name. Errors of all functions: timeout, cancelled, unavailable. The errors of open() contain the
  // address, as Go's do: "dial tcp 10.0.0.1:80: connect: connection refused".
  static Result<Connection> open(const std::string& host, uint16_t port, const AddressLookup& lookup, CallContext context);
  // Starts TLS. The certificate is not verified: no certificate authority is known for pods.
  Result<void> secure(const std::string& host);

  Result<void> write(std::string_view bytes);
  Result<std::string_view> read();  // the received bytes, valid until the next call; empty at the end of the stream

 private:
  struct CloseTls {
    void operator()(SSL* tls) const { SSL_free(tls); }
  };
  explicit Connection(CallContext context) : context_(std::move(context)) {}
  static Result<Connection> dial(const std::string& host, uint16_t port, const AddressLookup& lookup, CallContext context);
  Result<void> wait(short events);
  Result<void> after(int outcome, const char* doing);

  CallContext context_;
  Fd socket_;
  std::unique_ptr<SSL, CloseTls> tls_;
  std::vector<char> buffer_;
};

}  // namespace coracle::node

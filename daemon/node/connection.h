// SPDX-License-Identifier: Apache-2.0
// A connection to a pod for one probe or hook: TCP, or TLS to whoever answers, with a deadline over all of it. Not libcurl,
// whose forty libraries would be the larger part of the daemon's memory for what is a few lines here.
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

struct Patience {
  std::chrono::steady_clock::time_point deadline;
  std::stop_token stop;
};

using Addresses = std::shared_ptr<const addrinfo>;  // of one host, the best first
// See Resolver::find.
using AddressLookup = std::function<Result<Addresses>(const std::string& host, uint16_t port, const Patience& patience)>;

// "10.0.0.1:80", "[::1]:80"
std::string host_and_port(const std::string& host, uint16_t port);

class Connection {
 public:
  // `host` is an address or a name. Errors, here and below: timeout, cancelled, unavailable. Those of open() name the address,
  // as Go does: "dial tcp 10.0.0.1:80: connect: connection refused".
  static Result<Connection> open(const std::string& host, uint16_t port, const AddressLookup& lookup, Patience patience);
  // From here on it is TLS. The certificate is not looked at: a pod's names nobody whom we know.
  Result<void> secure(const std::string& host);

  Result<void> write(std::string_view bytes);
  Result<std::string_view> read();  // what has come, valid until the next call; empty at the end

 private:
  struct CloseTls {
    void operator()(SSL* tls) const { SSL_free(tls); }
  };
  explicit Connection(Patience patience) : patience_(std::move(patience)) {}
  static Result<Connection> dial(const std::string& host, uint16_t port, const AddressLookup& lookup, Patience patience);
  Result<void> wait(short events);
  Result<void> after(int outcome, const char* doing);

  Patience patience_;
  Fd socket_;
  std::unique_ptr<SSL, CloseTls> tls_;
  std::vector<char> buffer_;
};

}  // namespace coracle::node

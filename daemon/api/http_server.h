// SPDX-License-Identifier: Apache-2.0
// The HTTP server: it listens, accepts connections over TLS and over a local socket, reads requests and passes each one to a
// handler.
//   acceptor (1 thread): listeners and idle connections ──readable──▶ worker pool (grows and shrinks) ──▶ handler
//                            ▲──────────────── keep-alive: idle again ──────┘
// An idle connection uses memory but no thread. A thread is used by a running request or watch, and by a request that waits for
// its client to send the body (body.h) or to read the response. Waiting requests have a limit of their own, so that slow clients
// do not block others. A client that gets its response before its request was read completely has some time to read it; then the
// connection is closed. Beyond the limits below a client gets 429, or its connection is closed.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/api/connection.h"
#include "daemon/api/http.h"
#include "runtime/base/result.h"

namespace coracle::api {

// kube-apiserver's limits are 600 requests (400, and 200 mutating ones) and 1000 requests per HTTP/2 connection, without a limit
// of connections. The limits here fit 512 MB: each connection has a TLS session, and each running request a thread.
constexpr int kRequestsMax = 192;      // concurrent short requests, including queued ones (daemon/flowcontrol)
constexpr int kWatchesMax = 512;       // concurrent watches, log follows, execs
constexpr int kBodiesMax = 160;        // short requests that wait for their clients to send the body or to read the response
constexpr int kConnectionsMax = 1024;  // open connections, including idle ones
constexpr int kWorkersSpare = 8;       // extra threads that can still answer 429

struct HttpServerLimits {  // tests use small values
  int requests = kRequestsMax, watches = kWatchesMax, connections = kConnectionsMax, bodies = kBodiesMax;
  std::chrono::milliseconds handshake{10'000};  // from accept to the end of the handshake
  std::chrono::milliseconds head{10'000};       // from the first byte to the empty line
  std::chrono::milliseconds body{60'000};       // a complete ordinary body
  std::chrono::milliseconds body_grace{5'000};  // it may be slower than kBodyBytesPerSecond for so long
  std::chrono::milliseconds rest{300'000};      // idle time between two requests
};

// A Unix socket for this machine's root, and for whom the server runs as: no TLS is needed, because the kernel says who has
// connected. Others are turned away. Source: unix(7), SO_PEERCRED.
struct LocalSocket {
  std::string path;               // "": there is none
  std::function<UserPtr()> user;  // whom its requests come from; called by one thread
};

class HttpServer {
 public:
  using Handler = std::function<void(Exchange&)>;
  // Whether a request occupies its thread for long (a watch or a stream). Such requests have their own limit.
  using IsLong = std::function<bool(const Head&)>;
  // Fills in the response to a rejected request.
  using Refuse = std::function<void(Exchange&, const Error&)>;

  HttpServer(TlsSettings& tls, Handler handler, IsLong is_long, Refuse refuse, HttpServerLimits limits = {});
  ~HttpServer();

  // Starts listening on numeric addresses; port 0 picks a free one. Returns the bound endpoints in order. Errors: as
  // sys::listen_tcp; then nothing listens. Without the local socket it goes on, with a warning: clients take the network.
  Result<std::vector<sys::Endpoint>> start(const std::vector<sys::Endpoint>& listen_on, LocalSocket local = {});
  void stop();                              // closes all connections; blocks until no handler runs
  const std::string& local_socket() const;  // its path; "": there is none

  struct Counts {
    int connections = 0, resting = 0, requests = 0, watches = 0, bodies = 0, threads = 0, long_heads = 0;
  };
  Counts counts() const;
  // Whether the server is stopping. Long requests check it between two waits.
  bool stopping() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace coracle::api

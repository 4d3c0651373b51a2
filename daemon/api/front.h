// SPDX-License-Identifier: Apache-2.0
// The front of the house: listens, speaks TLS, reads requests, and hands each to one handler.
//   doorman (1 thread): listeners and resting connections ──readable──▶ crew (threads come and go) ──▶ handler
//                            ▲──────────────── keep-alive: back to rest ────┘
// A resting connection costs memory and no thread; a thread is held by a running request or watch, or by one that waits for its
// client, to send its body (body.h) or to read its answer, which has a limit of its own: who is slow keeps nobody else out. Who
// is answered before all of his request was read has a while to read the answer, and is then cut off. Limits are named below;
// beyond them a client is told 429, or turned away at the door.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/api/http.h"
#include "daemon/api/tls.h"
#include "runtime/base/result.h"

namespace coracle::api {

// The API server's are 600 (400 and 200 that change something), 1000 requests of one HTTP/2 connection, and no limit for the
// rest. These are what 512 MB bear: each connection has a TLS session, each request that runs a thread.
constexpr int kRequestsMax = 192;      // short requests at once, those that wait for their turn included (daemon/fairness)
constexpr int kWatchesMax = 512;       // watches, log follows, execs at once
constexpr int kBodiesMax = 160;        // short requests that wait for their clients: to send the body, or to read the answer
constexpr int kConnectionsMax = 1024;  // open connections, resting ones included
constexpr int kCrewSpare = 8;          // threads that can still say 429

struct FrontLimits {  // tests make them small
  int requests = kRequestsMax, watches = kWatchesMax, connections = kConnectionsMax, bodies = kBodiesMax;
  std::chrono::milliseconds handshake{10'000};  // from accept to its end
  std::chrono::milliseconds head{10'000};       // from its first byte to the empty line
  std::chrono::milliseconds body{60'000};       // an ordinary one, whole
  std::chrono::milliseconds body_grace{5'000};  // so long it may be slower than kBodyBytesPerSecond
  std::chrono::milliseconds rest{300'000};      // between two requests
};

class Front {
 public:
  using Handler = std::function<void(Exchange&)>;
  // Says whether a request occupies its thread for long (a watch): it counts against the other limit.
  using IsLong = std::function<bool(const Head&)>;
  // What a refused request is told: fills in the answer.
  using Refuse = std::function<void(Exchange&, const Error&)>;

  Front(TlsSettings& tls, Handler handler, IsLong is_long, Refuse refuse, FrontLimits limits = {});
  ~Front();

  // Numeric addresses; port 0 picks one. Returns what was bound, in order. Errors: as sys::listen_tcp; then nothing listens.
  Result<std::vector<sys::Endpoint>> start(const std::vector<sys::Endpoint>& listen_on);
  void stop();  // ends every connection; returns when no handler runs

  struct Counts {
    int connections = 0, resting = 0, requests = 0, watches = 0, bodies = 0, threads = 0, long_heads = 0;
  };
  Counts counts() const;
  // Asked of long requests between two sleeps: is the house closing?
  bool stopping() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace coracle::api

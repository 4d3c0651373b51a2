// SPDX-License-Identifier: Apache-2.0
// IdleConnections: a server's connections that wait for their next request, ordered by when they end and by which of them is
// wanted least, for a server that is full. Pure, but for the connections that it owns.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "daemon/api/connection.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"

namespace coracle::api {

// A connection of one client, during its requests and between them.
struct ClientConnection {
  ClientConnection(Fd socket, std::shared_ptr<SSL_CTX> context) : stream(std::move(socket), std::move(context)) {}
  ClientConnection(Fd socket, UserPtr user) : stream(std::move(socket), std::move(user)) {}
  Connection stream;
  uint64_t token = 0;
  bool greeted = false;  // the handshake is complete
  SteadyTime idle_since{};
  SteadyTime idle_until{};               // closed if nothing arrives by then
  std::optional<SteadyTime> head_until;  // the deadline of a head that has begun
  bool in_set = false;                   // registered in the ReadySet
  size_t blank_bytes = 0;                // empty lines before the request
  bool long_head = false;                // counted among the long heads of the server
  size_t lingers = 0;                    // after a final response: how many more input bytes are discarded
};
using ClientConnectionPtr = std::shared_ptr<ClientConnection>;

// The connections without a request, by token. What orders them (greeted, lingers, idle_since, idle_until) must not change while
// they are here. Every call takes logarithmic time, because a flood of connections makes many. Not thread-safe.
class IdleConnections {
 public:
  bool empty() const { return all_.empty(); }
  size_t size() const { return all_.size(); }
  void add(ClientConnectionPtr connection) {
    const uint64_t token = connection->token;
    const bool is_wanted = connection->greeted && connection->lingers == 0;
    Place place{{is_wanted, connection->idle_since, token}, {connection->idle_until, token}};
    by_worth_.insert(place.worth), by_end_.insert(place.end);
    all_.emplace(token, std::pair(std::move(connection), place));
  }
  ClientConnectionPtr take(uint64_t token) {  // null if absent
    auto found = all_.extract(token);
    if (!found) return nullptr;
    auto& [connection, place] = found.mapped();
    by_worth_.erase(place.worth), by_end_.erase(place.end);
    return std::move(connection);
  }
  // First those without a completed handshake and those with a final response, then the one that has been idle for longest. Null
  // if there is none.
  ClientConnectionPtr take_least_wanted() { return empty() ? nullptr : take(std::get<uint64_t>(*by_worth_.begin())); }
  ClientConnectionPtr take_overdue(SteadyTime now) {  // null if there is none
    return first_end() <= now ? take(by_end_.begin()->second) : nullptr;
  }
  SteadyTime first_end() const { return empty() ? SteadyTime::max() : by_end_.begin()->first; }

 private:
  using Worth = std::tuple<bool, SteadyTime, uint64_t>;
  using End = std::pair<SteadyTime, uint64_t>;
  struct Place {
    Worth worth;
    End end;
  };
  std::map<uint64_t, std::pair<ClientConnectionPtr, Place>> all_;
  std::set<Worth> by_worth_;
  std::set<End> by_end_;
};

}  // namespace coracle::api

// SPDX-License-Identifier: Apache-2.0
// Informers: one cache per kind, shared by everybody in the process who reads that kind. main makes it, the rooms ask
// it for kinds and register what they want to hear, main starts it, the rooms wait until it is level.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <stop_token>

#include "daemon/informer/informer.h"

namespace coracle {

class Informers {
 public:
  // `client` must outlive it.
  explicit Informers(Client& client, Reopening reopening = Reopening::by_thread) : client_(client), reopening_(reopening) {}

  // Before start(): the cache of a kind, made when nobody asked before. After start(): a bug when it was not made.
  Informer& of(const Kind& kind);
  Result<void> start();
  // Before anybody who subscribed is destroyed: when it returns, no handler is called any more. May be called again.
  void stop();
  bool wait_synced(std::stop_token stop) const;  // all of them; false when stopped
  bool synced() const;
  // For tests, by hand: tries to open the watches that have ended. False when none has.
  bool turn();

 private:
  struct ByName {
    bool operator()(const Kind* a, const Kind* b) const {
      return std::pair(a->group, a->resource) < std::pair(b->group, b->resource);
    }
  };
  Client& client_;
  const Reopening reopening_;
  bool started_ = false;
  std::map<const Kind*, std::unique_ptr<Informer>, ByName> all_;
};

}  // namespace coracle

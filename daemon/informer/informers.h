// SPDX-License-Identifier: Apache-2.0
// Informers: one informer per kind, shared by all components of the process. The daemon creates it, components request kinds and
// register handlers, the daemon starts it, and components wait until it has synced.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <stop_token>

#include "daemon/informer/informer.h"

namespace coracle {

class Informers {
 public:
  // `client` must outlive the informers.
  explicit Informers(Client& client, Reopening reopening = Reopening::by_thread) : client_(client), reopening_(reopening) {}

  // Before start(): the informer of a kind, created on first use. After start(): the kind must have been requested before.
  Informer& of(const Kind& kind);
  Result<void> start();  // all of them. Errors: those of the first that fails; those after it are not started
  // Call before subscribers are destroyed: after it returns, no handler is called. May be called repeatedly.
  void stop();
  bool wait_synced(std::stop_token stop) const;  // all of them; false if stopped
  bool synced() const;
  // For tests, by hand: tries to open ended watches. False if none has ended.
  bool run_once();

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

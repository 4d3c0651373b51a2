// SPDX-License-Identifier: Apache-2.0
// StartOrder: the pods of this node that this daemon has seen ready, and the pods that may not start yet. After a power cut,
// every status in the API is outdated, so the start-up dependencies (daemon/startup) use this state instead. Thread-safe, does
// not block.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "runtime/base/guarded.h"

namespace coracle::node {

class StartOrder {
 public:
  // Records the readiness after a sync of the pod. Returns whether it has changed.
  bool note(const std::string& uid, bool ready) {
    return state_.with([&](State& state) { return ready ? state.ready.insert(uid).second : state.ready.erase(uid) > 0; });
  }
  bool ready(const std::string& uid) const {
    return state_.with([&](const State& state) { return state.ready.count(uid) > 0; });
  }

  // Call before checking whether the pod may start, so that no change in between is missed.
  void hold(const std::string& uid, const std::string& ns) {
    state_.with([&](State& state) { state.held[uid] = ns; });
  }
  void let_go(const std::string& uid) {
    state_.with([&](State& state) { state.held.erase(uid); });
  }
  void forget(const std::string& uid) {
    state_.with([&](State& state) { state.held.erase(uid), state.ready.erase(uid); });
  }
  std::vector<std::string> held_in(const std::string& ns) const {
    return state_.with([&](const State& state) {
      std::vector<std::string> out;
      for (const auto& [uid, where] : state.held)
        if (where == ns) out.push_back(uid);
      return out;
    });
  }

 private:
  struct State {
    std::set<std::string> ready;
    std::map<std::string, std::string> held;  // uid → namespace
  };
  Guarded<State> state_;
};

}  // namespace coracle::node

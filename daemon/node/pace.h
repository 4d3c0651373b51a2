// SPDX-License-Identifier: Apache-2.0
// Pace: decides when each of many volumes or pods is measured again by a directory walk. At most one walk per item runs at a
// time, and the walks of one item take at most a fiftieth of the time. Thread-safe.
#pragma once

#include <algorithm>
#include <chrono>
#include <map>

#include "runtime/base/clock.h"
#include "runtime/base/guarded.h"

namespace coracle::node {

constexpr std::chrono::seconds kStorageLook{5};     // interval of the checks for due items
constexpr std::chrono::seconds kStoragePeriod{10};  // the kubelet's housekeeping interval
constexpr int kStoragePace = 50;                    // after a walk of duration t, the pause is at least 50 t

template <typename Id>
class Pace {
 public:
  // Keeps in `all` only the items that are due, and marks them as under way. Forgets items that are not in `all`.
  template <typename T>
  void keep_due(std::map<Id, T>& all, SteadyTime now) {
    rounds_.with([&](auto& rounds) {
      std::erase_if(rounds, [&](const auto& entry) { return !all.contains(entry.first) && !entry.second.is_under_way; });
      std::erase_if(all, [&](const auto& entry) {
        Round& its = rounds[entry.first];
        if (its.is_under_way || now < its.due) return true;
        its.is_under_way = true;
        return false;
      });
    });
  }
  // The walk of the item has ended. It is due again after `period`, or later if the walk was slow.
  void note_end(const Id& id, SteadyTime began, SteadyTime ended, std::chrono::nanoseconds period) {
    const auto half_a_look = std::chrono::nanoseconds(kStorageLook) / 2;  // the checks are not exactly periodic
    const auto rest = std::max<std::chrono::nanoseconds>(period - half_a_look, kStoragePace * (ended - began));
    rounds_.with([&](auto& rounds) { rounds[id] = {false, ended + rest}; });
  }

 private:
  struct Round {
    bool is_under_way = false;
    SteadyTime due{};
  };
  Guarded<std::map<Id, Round>> rounds_;
};

}  // namespace coracle::node

// SPDX-License-Identifier: Apache-2.0
// Pace: when each of many things is measured again by a walk that may last. One walk at a time for each, and no more than a
// fiftieth of the time for any of them. Thread-safe.
#pragma once

#include <algorithm>
#include <chrono>
#include <map>

#include "runtime/base/clock.h"
#include "runtime/base/guarded.h"

namespace coracle::node {

constexpr std::chrono::seconds kStorageLook{5};     // the looks come so often
constexpr std::chrono::seconds kStoragePeriod{10};  // kubelet's housekeeping
constexpr int kStoragePace = 50;                    // what takes t is measured again after 50 t at the soonest

template <typename Id>
class Pace {
 public:
  // Leaves in `all` what is due now, which is under way from then on. What is not in `all` is forgotten.
  template <typename T>
  void keep_due(std::map<Id, T>& all, SteadyTime now) {
    turns_.with([&](auto& turns) {
      std::erase_if(turns, [&](const auto& entry) { return !all.contains(entry.first) && !entry.second.is_under_way; });
      std::erase_if(all, [&](const auto& entry) {
        Turn& its = turns[entry.first];
        if (its.is_under_way || now < its.due) return true;
        its.is_under_way = true;
        return false;
      });
    });
  }
  // Its walk is over. It is due again after `period`, or later when the walk took long.
  void note_end(const Id& id, SteadyTime began, SteadyTime ended, std::chrono::nanoseconds period) {
    const auto half_a_look = std::chrono::nanoseconds(kStorageLook) / 2;  // looks are seldom on the dot
    const auto rest = std::max<std::chrono::nanoseconds>(period - half_a_look, kStoragePace * (ended - began));
    turns_.with([&](auto& turns) { turns[id] = {false, ended + rest}; });
  }

 private:
  struct Turn {
    bool is_under_way = false;
    SteadyTime due{};
  };
  Guarded<std::map<Id, Turn>> turns_;
};

}  // namespace coracle::node

// SPDX-License-Identifier: Apache-2.0
// FailedPods: how long a pod that ended stays, or stays without a successor, before another one is tried in its place. A pod that
// the node refuses fails as fast as it is made, and every try is written to the card: the first is replaced at once, then after a
// second, doubled each time up to a limit, and from the start when it has gone well for twice that. Source: client-go
// util/flowcontrol backoff (semantics).
#pragma once

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "runtime/base/clock.h"
#include "runtime/base/guarded.h"
#include "store/object/object.h"

namespace coracle::controller {

class FailedPods {  // thread-safe
 public:
  FailedPods(const Clock& clock, std::chrono::seconds longest) : clock_(clock), longest_(longest) {}

  // How long it must stay yet; nothing: it may go. `place`: a node, a pod's name, or "" where one pod is as good as another. Each
  // change of the set begins anew.
  std::optional<std::chrono::nanoseconds> wait(const Object& set, const std::string& place) const {
    SteadyTime now = clock_.steady();
    return tries_.with([&](const auto& tries) -> std::optional<std::chrono::nanoseconds> {
      auto found = tries.find(spot_of(set, place));
      if (found == tries.end() || now >= found->second.at + found->second.pause) return std::nullopt;
      return found->second.at + found->second.pause - now;
    });
  }
  // It went, and another one is tried.
  void tried(const Object& set, const std::string& place) {
    SteadyTime now = clock_.steady();
    tries_.with([&](auto& tries) {
      std::erase_if(tries, [&](const auto& entry) { return now - entry.second.at > 2 * longest_; });
      Try& again = tries[spot_of(set, place)];
      again = {again.pause == kNone ? kFirst : std::min(2 * again.pause, longest_), now};
    });
  }
  void forget(const Object& set) {
    tries_.with(
        [&](auto& tries) { std::erase_if(tries, [&](const auto& entry) { return std::get<0>(entry.first) == set.uid(); }); });
  }

 private:
  using Spot = std::tuple<std::string, int64_t, std::string>;  // set, generation, place
  static Spot spot_of(const Object& set, const std::string& place) {
    return {set.uid(), get_int(set.json(), "metadata.generation"), place};
  }
  static constexpr std::chrono::seconds kNone{0}, kFirst{1};
  struct Try {
    std::chrono::seconds pause = kNone;
    SteadyTime at{};
  };
  const Clock& clock_;
  const std::chrono::seconds longest_;
  Guarded<std::map<Spot, Try>> tries_;
};

}  // namespace coracle::controller

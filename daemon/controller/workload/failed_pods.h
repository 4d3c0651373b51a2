// SPDX-License-Identifier: Apache-2.0
// FailedPods: the back-off before a failed pod is replaced. A pod that the node rejects fails as fast as it is created, and every
// attempt is written to the SD card. The first failure is replaced at once, the next ones after one second, doubled up to a
// limit. The back-off resets after twice the limit without a failure. Source: client-go util/flowcontrol backoff (semantics).
#pragma once

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "runtime/base/clock.h"
#include "runtime/base/guarded.h"
#include "store/kinds/meta/metadata.h"

namespace coracle::controller {

class FailedPods {  // thread-safe
 public:
  FailedPods(const Clock& clock, std::chrono::seconds longest) : clock_(clock), longest_(longest) {}

  // The remaining back-off; nullopt: the pod may be replaced. `place`: a node, a pod's name, or "" if pods are interchangeable.
  // Each new generation of the set starts without back-off.
  std::optional<std::chrono::nanoseconds> wait(const Object& set, const std::string& place) const {
    SteadyTime now = clock_.steady();
    return tries_.with([&](const auto& tries) -> std::optional<std::chrono::nanoseconds> {
      auto found = tries.find(spot_of(set, place));
      if (found == tries.end() || now >= found->second.at + found->second.pause) return std::nullopt;
      return found->second.at + found->second.pause - now;
    });
  }
  // Records that a failed pod is being replaced.
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
  static Spot spot_of(const Object& set, const std::string& place) { return {set.uid(), metadata_of(set).generation(), place}; }
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

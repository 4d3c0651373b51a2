// SPDX-License-Identifier: Apache-2.0
// See elapsed.h.
#include "daemon/controller/shared/elapsed.h"

#include <algorithm>

namespace coracle::controller {

std::chrono::nanoseconds Elapsed::since(const std::string& owner, const std::string& what, WallTime moment) const {
  std::chrono::nanoseconds by_wall = clock_.now() - moment;
  SteadyTime now = clock_.steady();
  return seen_.with([&](auto& all) {
    auto [found, fresh] = all.try_emplace({owner, what}, Seen{moment, now, by_wall});
    Seen& seen = found->second;
    // The wall clock was before the moment (not set yet) and is now after it: measure by the wall clock again.
    bool set_since = seen.before.count() < 0 && by_wall.count() >= 0;
    if (seen.moment != moment || set_since) seen = {moment, now, by_wall};
    return std::max(seen.before, std::chrono::nanoseconds::zero()) + (now - seen.at);
  });
}

void Elapsed::forget(const std::string& owner) {
  seen_.with([&](auto& all) {
    auto first = all.lower_bound({owner, ""}), last = first;
    while (last != all.end() && last->first.first == owner) ++last;
    all.erase(first, last);
  });
}

}  // namespace coracle::controller

// SPDX-License-Identifier: Apache-2.0
// Claims: exclusive use of a name by one pull at a time. Pulls from one registry run one after the other (the kubelet's default).
#pragma once

#include <optional>
#include <set>
#include <stop_token>
#include <string>

#include "runtime/base/guarded.h"
#include "runtime/base/result.h"
#include "runtime/base/scope.h"

namespace coracle::image {

class Claims {
 public:
  // Blocks until `name` is free and claims it; the Scope releases it. Errors: cancelled.
  Result<Scope> take(const std::string& name, std::stop_token stop) {
    bool got = held_.wait(
        stop, [&](const auto& held) { return !held.contains(name); },
        [&](auto& held) { return !stop.stop_requested() && held.insert(name).second; });
    if (!got) return Error(Code::cancelled, "cancelled");
    return Scope([this, name] {
      held_.with([&](auto& held) { held.erase(name); });
      held_.notify();
    });
  }
  bool any() const {
    return held_.with([](const auto& held) { return !held.empty(); });
  }

 private:
  Guarded<std::set<std::string>> held_;
};

}  // namespace coracle::image

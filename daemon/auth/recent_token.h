// SPDX-License-Identifier: Apache-2.0
// The token that the last request of a connection bore: if the next one bears the same, neither its digest nor the cache of
// tokens (token_cache.h) is needed.
#pragma once

#include <memory>
#include <string>

#include "runtime/base/clock.h"
#include "runtime/base/units.h"

namespace coracle::auth {

struct Finding;  // token_cache.h

struct RecentToken {
  std::string token;
  std::shared_ptr<const Finding> finding;  // null: there is none
  SteadyTime until{};
  Revision held_at = 0;  // the store's revision when the finding was last known to hold: nothing can have changed until the next
};

}  // namespace coracle::auth

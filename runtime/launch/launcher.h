// SPDX-License-Identifier: Apache-2.0
// What the launcher is told first on its report socket, with all its descriptors beside it: those of the plan in the order
// of LaunchFds, then its own. From there on the socket is the child's, see child.h.
#pragma once

#include "runtime/launch/flat_plan.h"

namespace coracle::launch {

constexpr int kOwnFds = 3;
struct Begin {
  uint32_t fds_count;                     // the plan's
  uint32_t has_terminal;                  // else it has 0, 1 and 2 already
  int32_t target, start, time_namespace;  // where they stand among the descriptors; -1 = none. See Launch
};
static_assert(kFdsMax + kOwnFds <= 253, "SCM_MAX_FD");

}  // namespace coracle::launch

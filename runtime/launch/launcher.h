// SPDX-License-Identifier: Apache-2.0
// The first message to the launcher on its report socket, with all descriptors: those of the plan in the order of LaunchFds, then
// its own. After that the child uses the socket, see child.h.
#pragma once

#include "runtime/launch/flat_plan.h"

namespace coracle::launch {

constexpr int kOwnFds = 3;
struct Begin {
  uint32_t fds_count;                     // the number of the plan's descriptors
  uint32_t has_terminal;                  // otherwise it inherits 0, 1 and 2
  int32_t target, start, time_namespace;  // indexes into the descriptors; -1: none. See Launch
};
static_assert(kFdsMax + kOwnFds <= 253, "SCM_MAX_FD");

}  // namespace coracle::launch

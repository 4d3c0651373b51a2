// SPDX-License-Identifier: Apache-2.0
// Gives a directory tree to a group, as Kubernetes' fsGroup has it. The tree may be a container's: it is walked as tree_walk.h
// says. Source: Kubernetes core/v1 PodSecurityContext (fsGroup, fsGroupChangePolicy); pkg/volume, SetVolumeOwnership (semantics).
#pragma once

#include <cstdint>
#include <stop_token>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"

namespace coracle::sys {

// The root belongs to the group, which may read and write in it, and what is made in it will.
Result<bool> is_of_group(const Fd& root, uint32_t group);
// Every entry goes to the group. Files: it may read and write; directories: it may enter them too, and what is made in them is
// the group's. Links are given away, not followed. The root comes last, so that one that was cut off is no tree of the group.
// Blocks for a walk through everything. Errors: cancelled; what the disk says.
Result<void> give_to_group(const Fd& root, uint32_t group, std::stop_token stop);

}  // namespace coracle::sys

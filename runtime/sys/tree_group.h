// SPDX-License-Identifier: Apache-2.0
// Changes the group of a directory tree, for Kubernetes' fsGroup. A container may control the tree, so it is walked as
// tree_walk.h describes. Source: Kubernetes core/v1 PodSecurityContext (fsGroup, fsGroupChangePolicy); pkg/volume,
// SetVolumeOwnership (semantics).
#pragma once

#include <cstdint>
#include <stop_token>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"

namespace coracle::sys {

// True if the root belongs to the group, grants it all access, and has the setgid bit, so that new entries inherit the group.
// Errors: errno's.
Result<bool> is_of_group(const Fd& root, uint32_t group);
// Gives every entry to the group. Files become readable and writable for it; directories become accessible too and get the setgid
// bit. Links are changed themselves, not followed. The root is changed last, so that an interrupted run does not look complete.
// Blocks for a walk over all entries. Errors: cancelled; I/O errors.
Result<void> give_to_group(const Fd& root, uint32_t group, std::stop_token stop);

}  // namespace coracle::sys

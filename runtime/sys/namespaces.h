// SPDX-License-Identifier: Apache-2.0
// Namespaces as descriptors: user namespaces with their id maps, and others that belong to one. They are made by a child
// that does nothing else; what is open keeps them alive when it is gone.
// Source: user_namespaces(7), namespaces(7), time_namespaces(7), ioctl_ns(2).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"

namespace coracle::sys {

struct IdRange {
  uint32_t inside = 0, outside = 0, size = 0;
};

struct OwnedNamespaces {
  Fd user;
  Fd network, ipc, uts;             // those that were asked for
  std::vector<IdRange> uids, gids;  // of the user namespace, `outside` as we see them
};
// A new user namespace with these maps, and new namespaces (CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS) that belong to it.
// Errors: forbidden, the maps name ids that are not ours to give; unavailable,
// user.max_user_namespaces are there already.
Result<OwnedNamespaces> make_user_namespace(const std::vector<IdRange>& uids, const std::vector<IdRange>& gids, uint64_t others);
// The same of a user namespace that is there already.
Result<OwnedNamespaces> join_user_namespace(const Fd& user, uint64_t others);

// The user namespace that a namespace belongs to. Errors: forbidden, it is not beneath ours.
Result<Fd> owner_of_namespace(const Fd& ns);

// This process moves into a new user namespace and is its root. It must have one thread. Maps of more than its own ids are
// written by newuidmap(1) and newgidmap(1). Errors: not_found when those are missing, forbidden by /etc/subuid.
Result<void> enter_user_namespace(const std::vector<IdRange>& uids, const std::vector<IdRange>& gids);
Result<bool> in_initial_user_namespace();  // as /proc/self/uid_map has it
Result<bool> may_set_groups();             // /proc/self/setgroups

// A new time namespace, for children to enter. This process has one thread, and its children by fork are born there.
struct ClockOffset {
  std::string clock;  // "monotonic", "boottime"
  int64_t seconds = 0;
  uint32_t nanoseconds = 0;
};
Result<Fd> make_time_namespace(const std::vector<ClockOffset>& offsets);
// setns for this process (pid: for its children). Errors: what the kernel said.
Result<void> join_namespace(const Fd& ns, uint64_t flag);

}  // namespace coracle::sys

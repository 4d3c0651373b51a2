// SPDX-License-Identifier: Apache-2.0
// Namespaces as descriptors: user namespaces with their id maps, and other namespaces that they own. A short-lived child process
// creates them; the descriptors keep them alive after it has exited.
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
  Fd network, ipc, uts;             // those that were requested
  std::vector<IdRange> uids, gids;  // of the user namespace, `outside` as seen from our user namespace
};
// A new user namespace with these maps, and new namespaces (CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS) that it owns. Errors:
// forbidden if the maps contain ids that we may not map; unavailable if user.max_user_namespaces is reached.
Result<OwnedNamespaces> make_user_namespace(const std::vector<IdRange>& uids, const std::vector<IdRange>& gids, uint64_t others);
// Creates the other namespaces in an existing user namespace.
Result<OwnedNamespaces> join_user_namespace(const Fd& user, uint64_t others);

// The user namespace that owns a namespace. Errors: forbidden if it is not a descendant of ours.
Result<Fd> owner_of_namespace(const Fd& ns);

// Moves this process into a new user namespace as its root. The process must have one thread. newuidmap(1) and newgidmap(1) write
// maps of more than its own ids. Errors: not_found if these programs are missing; forbidden by /etc/subuid.
Result<void> enter_user_namespace(const std::vector<IdRange>& uids, const std::vector<IdRange>& gids);
Result<bool> in_initial_user_namespace();  // reads /proc/self/uid_map
Result<bool> may_set_groups();             // /proc/self/setgroups

// A new time namespace for children to enter. This process must have one thread; its later fork() children are created in the
// namespace. Errors: the kernel's.
struct ClockOffset {
  std::string clock;  // "monotonic", "boottime"
  int64_t seconds = 0;
  uint32_t nanoseconds = 0;
};
Result<Fd> make_time_namespace(const std::vector<ClockOffset>& offsets);
// setns for this process (a pid namespace: for its children). Errors: the kernel's.
Result<void> join_namespace(const Fd& ns, uint64_t flag);

}  // namespace coracle::sys

// SPDX-License-Identifier: Apache-2.0
// Operations on a cgroup by its descriptor: writing limits, killing, freezing, waiting until it is empty, listing, removing. The
// kernel signals changes, so waits do not poll. Source: cgroup-v2.rst "Core Interface Files".
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"
#include "runtime/cgroup/settings.h"
#include "runtime/runtime.h"

namespace coracle::cgroup {

// What to do with a limit whose controller or file does not exist.
enum class Unenforceable : uint8_t {
  refuse,      // an error names the field and what is missing
  warn,        // skip it with a warning
  warn_on_v1,  // skip it with a warning if cgroup v1 holds the controller (hybrid mode), otherwise refuse
};

// Writes the settings. Returns one warning for each that was skipped. Errors: unsupported if a limit cannot be enforced here; the
// kernel's for an invalid value; each names the field.
Result<std::vector<std::string>> write_settings(const Fd& cgroup, const std::vector<Setting>& settings,
                                                Unenforceable unenforceable);
// memory.checkBeforeUpdate: rejects a limit below the current usage, as cgroup v1 did. Errors: conflict.
Result<void> check_memory_use(const Fd& cgroup, const oci::Resources& resources);

// Moves a process into the cgroup. Errors: conflict (EBUSY) if controllers are enabled for its children.
Result<void> put_in(const Fd& cgroup, int pid);
// SIGKILL to all processes in it and its descendants. It is no error if the cgroup has been removed.
Result<void> kill(const Fd& cgroup);
// Block until all processes are frozen, or running again. Errors: timeout; after a timeout of freeze() they are thawed.
Result<void> freeze(const Fd& cgroup, std::chrono::milliseconds timeout);
Result<void> thaw(const Fd& cgroup, std::chrono::milliseconds timeout);
Result<bool> is_frozen(const Fd& cgroup);     // cgroup.freeze: frozen or freezing
Result<bool> is_populated(const Fd& cgroup);  // it or a descendant has a process; a zombie does not count
// Errors: timeout. A removed cgroup counts as empty.
Result<void> wait_empty(const Fd& cgroup, std::chrono::milliseconds timeout);

constexpr size_t kPidsMax = 1 << 20;
// The processes in it and its descendants, ascending. A threaded cgroup is skipped: its processes are listed in its domain.
Result<std::vector<int>> pids(const Fd& cgroup);

// Removes the cgroup `name` of `parent` with all descendants, at any depth. It is no error if it does not exist. Errors: conflict
// (EBUSY) if it contains processes.
Result<void> remove(const Fd& parent, const std::string& name);

// Delegates the cgroup to a user: changes the owner of the directory and of the files that the kernel lists for delegation.
Result<void> give_to(const Fd& cgroup, uint32_t uid, uint32_t gid);

Result<uint64_t> oom_kills(const Fd& cgroup);  // number of processes that the memory limit has killed
// CPU, memory and pids. Without the memory controller, memory is the sum of the processes' proportional set sizes (PSS), without
// the page cache.
Result<runtime::Usage> usage(const Fd& cgroup);

}  // namespace coracle::cgroup

// SPDX-License-Identifier: Apache-2.0
// What may be done with a cgroup, by its descriptor: write its limits, kill, freeze, wait until it is empty, list, remove.
// The kernel announces what happens in a cgroup, so whoever waits sleeps. Source: cgroup-v2.rst "Core Interface Files".
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

// What becomes of a limit whose controller or file is not there.
enum class Unenforceable : uint8_t {
  refuse,      // an error names the field and what is missing
  warn,        // it is left out, and told
  warn_on_v1,  // left out and told where cgroup v1 holds the controller (a machine between the two), else refused
};

// Writes the settings. Returns one sentence for each that was left out. Errors: unsupported, a limit cannot be enforced
// here; what the kernel said to a value; each names the field.
Result<std::vector<std::string>> write_settings(const Fd& cgroup, const std::vector<Setting>& settings,
                                                Unenforceable unenforceable);
// memory.checkBeforeUpdate: a limit below what is in use now is refused, as cgroup v1 did. Errors: conflict.
Result<void> check_memory_use(const Fd& cgroup, const oci::Resources& resources);

// Moves a process in. Errors: conflict (EBUSY), controllers are switched on for what is inside.
Result<void> put_in(const Fd& cgroup, int pid);
// SIGKILL to everything in it and beneath. In a cgroup that is gone there is nothing.
Result<void> kill(const Fd& cgroup);
// Wait until all have stopped, or run. Errors: timeout, and then they run.
Result<void> freeze(const Fd& cgroup, std::chrono::milliseconds patience);
Result<void> thaw(const Fd& cgroup, std::chrono::milliseconds patience);
Result<bool> is_frozen(const Fd& cgroup);     // asked to be: what is starting in it stops as well
Result<bool> is_populated(const Fd& cgroup);  // a process is in it or beneath, one not yet reaped is none
// Errors: timeout. A cgroup that is gone is empty.
Result<void> wait_empty(const Fd& cgroup, std::chrono::milliseconds patience);

constexpr size_t kPidsMax = 1 << 20;
// In it and beneath, ascending. Errors: unsupported when it is threaded.
Result<std::vector<int>> pids(const Fd& cgroup);

// Removes the cgroup `name` of `parent` with all that was made inside, however deep. Nothing there is success. Errors:
// conflict (EBUSY), processes are in it.
Result<void> remove(const Fd& parent, const std::string& name);

// Makes a user inside owner of the cgroup, as delegation asks: the directory and the files the kernel names.
Result<void> give_to(const Fd& cgroup, uint32_t uid, uint32_t gid);

Result<uint64_t> oom_kills(const Fd& cgroup);  // how many processes were killed for its memory limit
// Where the memory controller is not there, what its processes hold stands in: their share of what they have mapped (PSS),
// without the page cache.
Result<runtime::Usage> usage(const Fd& cgroup);

}  // namespace coracle::cgroup

// SPDX-License-Identifier: Apache-2.0
// Events of a cgroup: out of memory, the last process has exited, frozen, removed. inotify signals that cgroup.events or
// memory.events has changed; then the current values are read (level-triggered, notifications are not counted). For `coracle-oci
// events` and for callers that wait for a container's end without being its parent.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"

namespace coracle::cgroup {

struct CgroupEvent {
  uint64_t ooms = 0;       // "oom" of memory.events: allocations about to fail at the limit, since the cgroup was created
  uint64_t oom_kills = 0;  // number of processes killed for it
  bool populated = false, frozen = false;
  bool gone = false;  // the cgroup was removed; populated is false, the rest as last read
  bool operator==(const CgroupEvent&) const = default;
};

class Watch {
 public:
  // `path`: the cgroup's directory. Errors: not_found.
  static Result<Watch> open(const std::string& path);
  // Readable if something may have changed, for a caller's own poll. Then call now().
  const Fd& fd() const { return inotify_; }
  // The current values; consumes all notifications so far. Does not block.
  Result<CgroupEvent> now();
  // Blocks until the values differ from `seen`. Nothing: the timeout has passed.
  Result<std::optional<CgroupEvent>> next(const CgroupEvent& seen, std::optional<std::chrono::milliseconds> timeout);

 private:
  Fd directory_, inotify_;
  CgroupEvent last_;
};

}  // namespace coracle::cgroup

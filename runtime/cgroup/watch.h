// SPDX-License-Identifier: Apache-2.0
// What happens in a cgroup, told: memory ran out, the last process has gone, it is frozen, it is removed. The kernel says
// that cgroup.events or memory.events has changed (inotify), and this reads what it says now: level, never a count of
// notifications. For `coracle-oci events` and for whoever waits for a container's end without being its parent.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"

namespace coracle::cgroup {

struct Happening {
  uint64_t ooms = 0;       // how often memory ran out at its limit, since the cgroup was made
  uint64_t oom_kills = 0;  // how many processes that has killed
  bool populated = false, frozen = false;
  bool gone = false;  // the cgroup was removed; the rest is as it was last seen
  bool operator==(const Happening&) const = default;
};

class Watch {
 public:
  // `path`: the cgroup's directory. Errors: not_found.
  static Result<Watch> open(const std::string& path);
  // Readable when something may have changed; for a caller's own poll. Then call now().
  const Fd& fd() const { return inotify_; }
  // How it is now; takes note of all notifications so far. Does not block.
  Result<Happening> now();
  // Sleeps until something differs from `seen`. Nothing: time is up.
  Result<std::optional<Happening>> next(const Happening& seen, std::optional<std::chrono::milliseconds> timeout);

 private:
  Fd directory_, inotify_;
  Happening last_;
};

}  // namespace coracle::cgroup

// SPDX-License-Identifier: Apache-2.0
// Limits on the disk space of a directory tree: project quotas. Every file below a directory has the directory's project id. The
// file system counts the space of each project and enforces its limit.
// Source: quotactl(2) (PRJQUOTA, quotactl_fd, Linux 5.14), ioctl_xfs_fsgetxattr(2); ext4 mounted with prjquota, XFS with pquota.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"
#include "runtime/base/units.h"

namespace coracle::sys {

struct ProjectUse {
  Bytes used, limit;  // limit 0: no limit
  uint64_t inodes = 0;
};

// The project id of the directory; 0: none. Errors: unsupported if the file system has no projects.
Result<uint32_t> project_of(const Fd& directory);
// Sets the project id of the directory, which new entries inherit. Existing entries keep theirs.
Result<void> set_project(const Fd& directory, uint32_t number);
// Sets the limit of a project on the file system of `place`, which may be any file or directory on it. `limit` 0: none. Errors:
// unsupported if the file system has no project quotas, or is mounted without them.
Result<void> set_project_limit(const Fd& place, uint32_t number, Bytes limit);
Result<ProjectUse> project_use(const Fd& place, uint32_t number);
// The use of the directory's own project, if it has one with a limit; otherwise nothing.
std::optional<ProjectUse> limited_use(const Fd& directory);

}  // namespace coracle::sys

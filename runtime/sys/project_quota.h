// SPDX-License-Identifier: Apache-2.0
// How much a directory tree may take of its disk: project quotas. Every file below a directory carries the directory's project
// number; the file system counts what files of one number take, and holds the limit.
// Source: quotactl(2) (PRJQUOTA, quotactl_fd, Linux 5.14), ioctl_xfs_fsgetxattr(2); ext4 mounted with prjquota, XFS with pquota.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"
#include "runtime/base/units.h"

namespace coracle::sys {

struct ProjectUse {
  Bytes used, limit;  // limit 0: none
  uint64_t inodes = 0;
};

// The directory's own number; 0: none. Errors: unsupported where the file system knows no projects.
Result<uint32_t> project_of(const Fd& directory);
// For the directory, and for what is made in it from now on. What is in it already keeps its number.
Result<void> set_project(const Fd& directory, uint32_t number);
// Of the file system that `place` is on; the place may be any file or directory of it. `limit` 0: none. Errors: unsupported where
// the file system does not count by projects, or was mounted without that.
Result<void> set_project_limit(const Fd& place, uint32_t number, Bytes limit);
Result<ProjectUse> project_use(const Fd& place, uint32_t number);
// Of the directory's own project, where it has one with a limit; nothing where none holds the directory to a size.
std::optional<ProjectUse> limited_use(const Fd& directory);

}  // namespace coracle::sys

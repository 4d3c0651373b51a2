// SPDX-License-Identifier: Apache-2.0
// See project_quota.h.
#include "runtime/sys/project_quota.h"

#include <linux/fs.h>
#include <linux/quota.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace coracle::sys {
namespace {

constexpr uint64_t kBlock = 1024;  // QIF_DQBLKSIZE: the unit of a limit

Result<fsxattr> attributes_of(const Fd& directory) {
  fsxattr found{};
  if (::ioctl(directory.get(), FS_IOC_FSGETXATTR, &found) == 0) return found;
  if (errno == ENOTTY || errno == EOPNOTSUPP) return Error(Code::unsupported, "the file system has no projects");
  return Error::from_errno("read the project");
}

Result<void> quota_call(const Fd& place, uint32_t command, uint32_t number, if_dqblk& quota, const char* what) {
  // By system call number: Debian 12's C library has no function for it.
  if (::syscall(SYS_quotactl_fd, place.get(), QCMD(command, PRJQUOTA), number, &quota) == 0) return {};
  if (errno == ESRCH || errno == ENOSYS || errno == ENOTSUP || errno == EINVAL)
    return Error(Code::unsupported, "the file system does not count by projects");
  return Error::from_errno(what);
}

}  // namespace

Result<uint32_t> project_of(const Fd& directory) { return TRY(attributes_of(directory)).fsx_projid; }

Result<void> set_project(const Fd& directory, uint32_t number) {
  fsxattr wanted = TRY(attributes_of(directory));
  if (wanted.fsx_projid == number && (wanted.fsx_xflags & FS_XFLAG_PROJINHERIT)) return {};
  wanted.fsx_projid = number;
  wanted.fsx_xflags |= FS_XFLAG_PROJINHERIT;
  if (::ioctl(directory.get(), FS_IOC_FSSETXATTR, &wanted) == 0) return {};
  if (errno == ENOTTY || errno == EOPNOTSUPP) return Error(Code::unsupported, "the file system has no projects");
  return Error::from_errno("set the project");
}

Result<void> set_project_limit(const Fd& place, uint32_t number, Bytes limit) {
  if_dqblk wanted{};
  wanted.dqb_valid = QIF_BLIMITS;
  wanted.dqb_bhardlimit = (uint64_t(limit.count) + kBlock - 1) / kBlock;
  return quota_call(place, Q_SETQUOTA, number, wanted, "set the quota");
}

Result<ProjectUse> project_use(const Fd& place, uint32_t number) {
  if_dqblk found{};
  TRY(quota_call(place, Q_GETQUOTA, number, found, "read the quota"));
  return ProjectUse{Bytes(int64_t(found.dqb_curspace)), Bytes(int64_t(found.dqb_bhardlimit * kBlock)), found.dqb_curinodes};
}

std::optional<ProjectUse> limited_use(const Fd& directory) {
  auto number = project_of(directory);
  if (!number || *number == 0) return std::nullopt;
  auto use = project_use(directory, *number);
  if (!use || use->limit.count == 0) return std::nullopt;
  return *use;
}

}  // namespace coracle::sys

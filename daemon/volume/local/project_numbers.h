// SPDX-License-Identifier: Apache-2.0
// The project numbers by which the sizes of volumes are enforced (project_quota.h). A program in a pod that owns the volume's
// directory may change the number that the directory has. So each root has records that no pod can reach, and they decide:
//   <root>/.coracle.projects/<inode> ──▶ <number>    a symbolic link, which is created atomically
// The inode is the directory's, so a record stays right when the directory is renamed. Records exist only where the file system
// has project quotas. A directory without a record (of an earlier version, or after a power cut) keeps the number that it has.
// Only the volume's own directory is corrected. Limit of this: a program that owns a directory or a file in the volume may give
// that to another project (FS_IOC_FSSETXATTR), and what is there then does not count to the volume's size, until the file system
// is full. Finding it would need a walk through the whole volume. The kernel refuses it in a user namespace, so a pod with
// `hostUsers: false` is held to its size. Source: Linux fs/file_attr.c (fs/ioctl.c before 6.17), fileattr_set_prepare.
// Thread-safe, but calls for the same root that change something must not run at once. Searches in two roots of one file system
// begin at different numbers.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"
#include "runtime/base/units.h"
#include "runtime/sys/project_quota.h"

namespace coracle::volume {

struct ProjectCalls {  // see project_quota.h; tests have their own
  std::function<Result<uint32_t>(const Fd& directory)> project_of = sys::project_of;
  std::function<Result<void>(const Fd& directory, uint32_t number)> set_project = sys::set_project;
  std::function<Result<void>(const Fd& place, uint32_t number, Bytes limit)> set_limit = sys::set_project_limit;
  std::function<Result<sys::ProjectUse>(const Fd& place, uint32_t number)> use = sys::project_use;
};

class ProjectNumbers {
 public:
  explicit ProjectNumbers(ProjectCalls calls) : calls_(std::move(calls)) {}

  // Gives the directory its project, with that limit at least; `path` is where the search for a free number begins. Returns why
  // the size is not enforced; "" if it is. Errors: errors of the file system.
  Result<std::string> limit(const Fd& root, const Fd& directory, const std::string& path, Bytes size);
  struct Held {
    sys::ProjectUse use;
    std::optional<uint32_t> was;  // the other number that the directory had
  };
  // Corrects the project and the limit of a directory whose size is enforced, but not of what is in it. Writes only what differs.
  // nullopt: its size is not enforced.
  Result<std::optional<Held>> hold(const Fd& root, const Fd& directory, const std::string& path, Bytes size);
  // The use of the directory's project; nullopt if its size is not enforced.
  std::optional<sys::ProjectUse> use_of(const Fd& root, const Fd& directory) const;
  // Removes the limit and the record, before the directory is deleted. Its files keep the number until then.
  void release(const Fd& root, const Fd& directory);
  // Removes the record of an earlier directory with the same inode.
  static void forget(const Fd& root, const Fd& directory);

 private:
  static std::optional<uint32_t> recorded(const Fd& root, const Fd& directory);
  static bool is_of_another(const Fd& root, const Fd& directory, uint32_t number);
  static Result<void> record(const Fd& root, const Fd& directory, uint32_t number);
  std::optional<uint32_t> number_of(const Fd& root, const Fd& directory) const;
  Result<uint32_t> free_number(const Fd& directory, const std::string& path) const;

  const ProjectCalls calls_;
};

}  // namespace coracle::volume

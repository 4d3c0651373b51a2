// SPDX-License-Identifier: Apache-2.0
// Records of sandboxes and containers, by which a new daemon finds them: small files that are written once and never changed.
// They are not synced to the disk, because they are useless after the machine has stopped. They do not contain exit codes:
// coracle-pause keeps those.
//   <state>/sandboxes/<sandbox>/sandbox.json
//                              /c-<container>.json
#pragma once

#include <string>
#include <vector>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"
#include "runtime/oci/spec.h"

namespace coracle::runtime {

struct SandboxRecord {
  std::string id, metadata, boot_id, cgroup;
  int64_t created_ns = 0;
  int launcher = 1;  // launch::kLauncherVersion of its coracle-pause
  bool host_network = false, host_ipc = false, host_pid = false, shared_pid = false;
  std::vector<oci::IdMapping> uid_mappings, gid_mappings;  // of its user namespace; empty: the host's
};

struct ContainerRecord {
  std::string id, metadata;
  std::string snapshot;      // "": none
  std::string seccomp_name;  // "": unconfined
  oci::Process process;      // defaults for exec
};

class Records {
 public:
  static Result<Records> open(const std::string& state_dir);
  Result<std::vector<std::string>> list() const;  // sandbox ids
  Result<void> write(const SandboxRecord& record) const;
  Result<SandboxRecord> read(const std::string& id) const;  // Errors: not_found; invalid if damaged
  Result<void> remove(const std::string& id) const;         // with its containers
  Result<void> write(const std::string& sandbox_id, const ContainerRecord& record) const;
  Result<std::vector<ContainerRecord>> containers(const std::string& sandbox_id) const;  // skips damaged records
  Result<void> remove(const std::string& sandbox_id, const std::string& container_id) const;

 private:
  Fd root_;
};

}  // namespace coracle::runtime

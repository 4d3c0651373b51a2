// SPDX-License-Identifier: Apache-2.0
// Export and import of claims' volumes as archives. Meanwhile, pods that would use the volume wait, and its data is not deleted.
// Thread-safe.
//   write   directory of the volume ──Trees::write──▶ archive
//   read    archive ──Trees::read──▶ staged directory ▸ replaces the volume's directory atomically
#pragma once

#include <functional>
#include <map>
#include <stop_token>
#include <string>

#include "daemon/node/pod_table.h"
#include "daemon/volume/backing.h"
#include "daemon/volume/local/directories.h"
#include "runtime/base/guarded.h"
#include "runtime/runtime.h"
#include "store/client/client.h"

namespace coracle::node {

struct VolumeArchiveSeams {
  Client& client;
  PodTable& table;
  volume::StorageObjects storage;
  volume::Directories& directories;
  runtime::Trees& trees;
  std::string node_name, host_root;
  std::function<bool()> has_pods;                          // true when all pods of the API, and so all users of claims, are known
  std::function<bool(const Object& volume)> is_ours;       // created by this node's provisioner
  std::function<bool(const Object& claim)> may_provision;  // this node's provisioner can create a volume for it
  std::function<void(const Key& claim)> look_again;        // syncs the pods that wait for the claim
  std::function<void()> clear;                             // deletes removed volumes, in the background
  std::function<void(std::chrono::milliseconds span)> wait;  // blocks until something may have changed
};

class VolumeArchives {
 public:
  explicit VolumeArchives(VolumeArchiveSeams seams) : seams_(std::move(seams)) {}

  bool is_busy(const Key& claim) const;    // its data is being read or written
  bool keeps_out(const Key& claim) const;  // pods wait until the operation has ended

  // Writes the content of the claim's volume to `archive`, which may be a pipe. `while_in_use` allows it while a pod may change
  // the content. Blocks. Errors: not_found; unavailable if the claim is not bound; conflict if a pod uses it or another copy is
  // running; unsupported if the volume is not a directory of this node; Trees'.
  Result<void> write(const Key& claim, bool while_in_use, const Fd& archive, std::stop_token stop);
  // Replaces the content of the claim's volume by that of the archive, completely or not at all. For a claim that waits for its
  // first pod, the volume is provisioned. Without `replace` the volume must be empty. Blocks. Errors: as write()'s;
  // already_exists if it is not empty; unsupported also if the volume was not created by this node's provisioner.
  Result<runtime::TreeCount> read(const Key& claim, bool replace, const Fd& archive, std::stop_token stop);
  // Copies the content of the claim's volume to an empty directory. Blocks. Errors: as write()'s.
  Result<runtime::TreeCount> copy(const Key& claim, const Fd& to, const runtime::TreeProgress& progress, std::stop_token stop);

 private:
  struct Bound {
    ObjectPtr claim, volume;
    std::string place;  // its directory
  };
  class ClaimLock;
  Result<Bound> bound(const Key& claim) const;
  Result<void> provision(const Key& claim, std::stop_token stop);
  Result<void> check_unused(const Key& claim) const;

  VolumeArchiveSeams seams_;
  Guarded<std::map<Key, bool>> busy_;  // by claim: whether pods wait
};

}  // namespace coracle::node

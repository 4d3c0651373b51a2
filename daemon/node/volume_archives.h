// SPDX-License-Identifier: Apache-2.0
// What the volumes of claims hold, written to archives and read from them. While that goes on, pods that would use the volume
// wait, and its data is not deleted. Thread-safe.
//   write   directory of the volume ──Trees::write──▶ archive
//   read    archive ──Trees::read──▶ staged directory ▸ takes the volume's place at once
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
  std::function<bool()> knows_pods;                          // all that the API has: their users are known
  std::function<bool(const Object& volume)> is_ours;         // made by this node's provisioner
  std::function<bool(const Object& claim)> may_provision;    // this node's provisioner can make one for it
  std::function<void(const Key& claim)> look_again;          // at the pods that wait for it
  std::function<void()> clear;                               // deletes what was removed, in the background
  std::function<void(std::chrono::milliseconds span)> wait;  // until something may have changed
};

class VolumeArchives {
 public:
  explicit VolumeArchives(VolumeArchiveSeams seams) : seams_(std::move(seams)) {}

  bool is_busy(const Key& claim) const;    // its data is read or written
  bool keeps_out(const Key& claim) const;  // pods wait until that is over

  // Writes what the claim's volume holds to `archive`, a pipe perhaps. `while_in_use`: although a pod may change it meanwhile.
  // Blocks. Errors: not_found; unavailable, it is not bound; conflict, a pod uses it, or another copy is being made; unsupported,
  // it is no directory of this node; Trees'.
  Result<void> write(const Key& claim, bool while_in_use, const Fd& archive, std::stop_token stop);
  // Puts what the archive holds into the claim's volume: all of it or nothing. A claim that waits for its first pod gets its
  // volume. `replace`: what the volume holds goes; else it has to be empty. Blocks. Errors: as above; unsupported, the volume was
  // not made by this node's provisioner.
  Result<runtime::TreeCount> read(const Key& claim, bool replace, const Fd& archive, std::stop_token stop);
  // Copies what the claim's volume holds into an empty directory. Blocks. Errors: as write()'s.
  Result<runtime::TreeCount> copy(const Key& claim, const Fd& to, const runtime::TreeProgress& progress, std::stop_token stop);

 private:
  struct Bound {
    ObjectPtr claim, volume;
    std::string place;  // the directory
  };
  class Turn;
  Result<Bound> bound(const Key& claim) const;
  Result<void> provision(const Key& claim, std::stop_token stop);
  Result<void> check_unused(const Key& claim) const;

  VolumeArchiveSeams seams_;
  Guarded<std::map<Key, bool>> busy_;  // claims, and whether pods wait
};

}  // namespace coracle::node

// SPDX-License-Identifier: Apache-2.0
// PodSandbox: the part of a sync that creates and removes a pod's sandbox with its network, and that releases and forgets a pod
// that has ended.
#pragma once

#include <string>
#include <vector>

#include "daemon/node/pod_volumes.h"
#include "daemon/node/sync_part.h"

namespace coracle::node {

class PodSandbox : private SyncPart {
 public:
  PodSandbox(SyncState& state, PodVolumes& volumes) : SyncPart(state), volumes_(volumes) {}

  // Prepares the volumes, too. Errors: what the pod needs and this node lacks; those of the runtime and the network.
  Result<void> create();
  // Gives the sandbox its addresses. Returns the conflicts of the pod's host ports with programs of the machine.
  Result<std::vector<std::string>> attach_network();
  Result<void> discard();  // stop(), with an event
  Result<void> stop();
  // Saves the results and releases everything else.
  Result<void> release();
  // Removes the pod from the API, the table and the disk.
  Result<void> forget();

 private:
  void tell_unenforceable();
  Result<void> check_means();
  Result<void> check_runtime_class();
  Result<void> remove();

  PodVolumes& volumes_;
};

}  // namespace coracle::node

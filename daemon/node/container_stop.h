// SPDX-License-Identifier: Apache-2.0
// ContainerStop: the part of a sync that stops a container: preStop hook, stop signal, kill.
#pragma once

#include "daemon/node/plan.h"
#include "daemon/node/sync_part.h"

namespace coracle::node {

class ContainerStop : private SyncPart {
 public:
  explicit ContainerStop(SyncState& state) : SyncPart(state) {}

  // `step`: run_pre_stop, terminate or kill. Does not wait for the end. Errors: the runtime's; a container that has ended is
  // none.
  Result<void> stop(const Step& step);

 private:
  bool is_in_vain(const ContainerRecord& record, int signal) const;
};

}  // namespace coracle::node

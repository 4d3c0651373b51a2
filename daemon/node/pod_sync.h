// SPDX-License-Identifier: Apache-2.0
// PodSync: one sync of one pod: observe, decide, plan, apply and report. It decides what the plan must know, and applies the plan
// by the other parts of the sync (sync_part.h). Used by PodWorker only.
#pragma once

#include <string>

#include "daemon/node/container_start.h"
#include "daemon/node/container_stop.h"
#include "daemon/node/plan.h"
#include "daemon/node/pod_images.h"
#include "daemon/node/pod_observer.h"
#include "daemon/node/pod_sandbox.h"
#include "daemon/node/pod_volumes.h"
#include "daemon/node/sync_part.h"

namespace coracle::node {

class PodSync : private SyncPart {
 public:
  explicit PodSync(SyncState& state)  // which outlives it
      : SyncPart(state),
        volumes_(state),
        images_(state),
        sandbox_(state, volumes_),
        start_(state, volumes_, images_),
        stop_(state),
        observer_(state, sandbox_, images_) {}

  // Errors: what could not be applied; the other steps are done and reported.
  Result<Outcome> run();

 private:
  Result<bool> prepare();
  void restore_status();
  bool waits_for_predecessor() const;
  void tell_refused();
  void weigh();
  void admit();
  void shorten_grace();
  void wait_for_others();
  void wait_for_rules();
  bool is_selected() const;  // by a Service's selector
  void set_phase_from_plan(const Plan& plan);
  Result<void> apply(const Plan& plan);
  Result<void> apply(const Step& step);
  void note_back_offs(const Plan& plan);

  PodVolumes volumes_;
  PodImages images_;
  PodSandbox sandbox_;
  ContainerStart start_;
  ContainerStop stop_;
  PodObserver observer_;
  bool acted_ = false;
};

}  // namespace coracle::node

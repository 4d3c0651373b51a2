// SPDX-License-Identifier: Apache-2.0
// SetWatch: what enqueues a set of a kind that has a history (StatefulSet, DaemonSet), and what its controller remembers about
// the set until it is deleted.
//   the set | its pods | its revisions ── change ──▶ key of the set
#pragma once

#include "daemon/controller/shared/common.h"
#include "daemon/controller/workload/failed_pods.h"
#include "daemon/controller/workload/history.h"
#include "daemon/controller/workload/pod_control.h"
#include "store/object/selector_index.h"

namespace coracle::controller {

struct SetWatch {
  const Kind& kind;
  Informer& sets;
  Informer& pods;
  Informer& revisions;
  // What is remembered, by set.
  OwnWrites& own;
  FailedPods& failed;
  SelectorIndex& selectors;

  // What the members refer to must outlive the informers. Adds the index "controller" to pods and revisions.
  void subscribe(const Enqueue& enqueue) const {
    index_by_controller(pods);
    follow(sets, selectors);
    sets.on_change([enqueue, watch = *this](const Informer::Change& change) {
      if (!change.after) {
        watch.own.forget(change.before->key());
        watch.failed.forget(*change.before);
      }
      enqueue.now(change.any().key());
    });
    pods.on_change([enqueue, watch = *this](const Informer::Change& change) {
      enqueue_owners(change, watch.kind, watch.selectors, enqueue);
    });
    watch_history(revisions, kind, selectors, enqueue);
  }
};

}  // namespace coracle::controller

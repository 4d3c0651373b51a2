// SPDX-License-Identifier: Apache-2.0
// The pure half of rollout: how far one has come, and what undoes it. A Deployment's past stands in its ReplicaSets, a
// StatefulSet's and a DaemonSet's in ControllerRevisions.
// Source: Kubernetes "Deployments", "Perform a Rollback on a DaemonSet"; the messages are those of kubectl.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace coracle::ctl {

enum class Rolling : uint8_t { none, deployment, stateful_set, daemon_set };
Rolling rolling_of(std::string_view kind);  // "Deployment"

struct Progress {
  std::string line;
  bool done = false;
};
// The line that `rollout status` prints. `revision` not 0: the one it has to be. Errors: conflict when it is another one, timeout
// when the deadline has passed, unsupported for the strategy OnDelete.
Result<Progress> progress_of(const json::value& object, Rolling rolling, int64_t revision);

struct Revision {
  int64_t number;
  json::value holder;  // a ReplicaSet or a ControllerRevision
};
// Those of `holders` that `object` controls, oldest first.
std::vector<Revision> history_of(const json::value& object, const json::array& holders, Rolling rolling);
json::value template_of(const Revision& revision, Rolling rolling);
std::string change_cause_of(const Revision& revision);  // "" when nobody said

// The revision to go back to; `number` 0: the one before the last. Errors: not_found.
Result<const Revision*> revision_to_undo_to(const std::vector<Revision>& history, int64_t number, Rolling rolling,
                                            std::string_view name);
// Whether the object's pods are made from that template by now.
bool has_template(const json::value& object, const json::value& pod_template);

struct Undo {
  json::value patch;
  const char* type;  // the patch's content type
};
Undo undo_to(const json::value& object, const Revision& revision, Rolling rolling);

}  // namespace coracle::ctl

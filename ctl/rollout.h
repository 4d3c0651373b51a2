// SPDX-License-Identifier: Apache-2.0
// The pure part of rollout: progress, history and undo. A Deployment's history is in its ReplicaSets, that of a StatefulSet or
// DaemonSet in ControllerRevisions.
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
// The line that `rollout status` prints. A `revision` other than 0 is the required revision. Errors: conflict if the object has
// another revision; timeout if the progress deadline has passed; unsupported for the strategy OnDelete.
Result<Progress> progress_of(const json::value& object, Rolling rolling, int64_t revision);

struct Revision {
  int64_t number;
  json::value holder;  // a ReplicaSet or a ControllerRevision
};
// The revisions that `object` controls, oldest first.
std::vector<Revision> history_of(const json::value& object, const json::array& holders, Rolling rolling);
json::value template_of(const Revision& revision, Rolling rolling);
std::string change_cause_of(const Revision& revision);  // from the annotation; "" if absent

// The revision to return to. `number` 0 is the one before the latest. Errors: not_found.
Result<const Revision*> revision_to_undo_to(const std::vector<Revision>& history, int64_t number, Rolling rolling,
                                            std::string_view name);
// True if the object's current pod template is this one.
bool has_template(const json::value& object, const json::value& pod_template);

struct Undo {
  json::value patch;
  const char* type;  // the patch's content type
};
Undo undo_to(const json::value& object, const Revision& revision, Rolling rolling);

}  // namespace coracle::ctl

// SPDX-License-Identifier: Apache-2.0
// why: what keeps an object from being what it should be, down to the cause: from a Deployment to its ReplicaSet, to the pod that
// does not start, to the filter that refused the node or the image that is not there. Reads and words; changes nothing.
//   object ─▶ its conditions ─▶ what it makes (sets, pods, jobs) ─▶ their conditions, containers, warnings ─▶ placement
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace coracle::ctl {

// Where `why` reads, all of one namespace. Absent objects are null.
struct WhySource {
  std::function<Result<json::value>(std::string_view kind, std::string_view name)> get;  // kind: "Deployment"
  std::function<Result<json::array>(std::string_view kind)> list;
  std::function<Result<json::value>(std::string_view pod)> placement;  // as /coracle/v1/placement answers
};

// The whole answer, for people. `kind`: Pod, Deployment, ReplicaSet, StatefulSet, DaemonSet, Job, CronJob, Service; others by
// their conditions and warnings. Errors: not_found; those of the source.
Result<std::string> why(const WhySource& source, std::string_view kind, std::string_view name);

// The scheduler's tables for one pod: for each node which filter refused it and by how much, and the scores of those that fit.
std::string placement_text(const json::value& placement, std::string_view indent);

}  // namespace coracle::ctl

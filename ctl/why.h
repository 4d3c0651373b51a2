// SPDX-License-Identifier: Apache-2.0
// why: explains why an object is not in its desired state, down to the cause: from a Deployment to its ReplicaSet, to the pod
// that does not start, to the scheduler filter that rejected the node or the missing image. Read-only; it produces text.
//   object ─▶ its conditions ─▶ what it makes (sets, pods, jobs) ─▶ their conditions, containers, warnings ─▶ placement
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace coracle::ctl {

// The objects that `why` reads, all in one namespace. An absent object is null.
struct WhySource {
  std::function<Result<json::value>(std::string_view kind, std::string_view name)> get;  // kind: "Deployment"
  std::function<Result<json::array>(std::string_view kind)> list;
  std::function<Result<json::value>(std::string_view pod)> placement;  // the answer of /coracle/v1/placement
};

// The explanation as text. Pod, Deployment, ReplicaSet, StatefulSet, DaemonSet, Job, CronJob and Service are followed to the
// cause; other kinds are explained by their conditions and warning events. What the source forbids is named and left out, except
// the object itself. Errors: not_found; those of the source.
Result<std::string> why(const WhySource& source, std::string_view kind, std::string_view name);

// The scheduling result for one pod as text: for each node the filter that rejected it and the missing amount, or its scores.
std::string placement_text(const json::value& placement, std::string_view indent);

}  // namespace coracle::ctl

// SPDX-License-Identifier: Apache-2.0
// The pure part of the Deployment controller: the Deployment and its ReplicaSets → the steps to take now and the status. One call
// takes one step of a rollout; the events of its changes trigger the next call.
//   plan ── create a set | scale sets | annotate | remove old sets ──▶ apply ──▶ status ──▶ (their events) ──▶ plan …
// Source: Kubernetes Deployment: rolling update within maxSurge and maxUnavailable, Recreate, proportional scaling, progress
// deadline, revision history. Annotations and reasons are Kubernetes'.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "daemon/controller/shared/common.h"

namespace coracle::controller {

inline constexpr std::string_view kHashLabel = "pod-template-hash";
inline constexpr std::string_view kRevisionAnnotation = "deployment.kubernetes.io/revision";
inline constexpr std::string_view kRevisionHistoryAnnotation = "deployment.kubernetes.io/revision-history";
inline constexpr std::string_view kDesiredAnnotation = "deployment.kubernetes.io/desired-replicas";
inline constexpr std::string_view kMaxAnnotation = "deployment.kubernetes.io/max-replicas";

struct DeploymentStep {
  enum class What { create, update, remove } what;
  ObjectPtr set;             // the present object (update, remove)
  json::value body;          // the new object (create, update)
  int64_t from = 0, to = 0;  // replicas; an event is recorded if they differ
};

struct DeploymentPlan {
  std::vector<DeploymentStep> steps;
  std::string revision;                           // for the Deployment's annotation; "": unchanged
  json::value status;                             // written if it differs
  std::optional<std::chrono::nanoseconds> again;  // time until the next deadline
};

struct ObservedDeployment {
  ObjectPtr deployment;
  std::vector<ObjectPtr> sets;  // the sets it controls
  bool old_pods_run = false;    // unfinished pods of other templates exist (Recreate waits for them)
  std::function<std::chrono::nanoseconds(WallTime moment)> since = {};  // time since a moment; absent: by the wall clock
};

DeploymentPlan plan_deployment(const ObservedDeployment& observed, WallTime now);

// The suffix of a set's name and the value of its pod-template-hash label: a hash of the template and the collision count.
std::string template_hash(const json::value& pod_template, int64_t collisions);
bool same_template(const json::value& a, const json::value& b);  // ignores the hash label

// The status if the name of the new set is taken by a set with another template.
json::value status_after_collision(const Object& deployment);
// The status after the API has rejected the new set.
json::value status_after_refusal(const Object& deployment, const std::string& message, WallTime now);

}  // namespace coracle::controller

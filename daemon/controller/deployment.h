// SPDX-License-Identifier: Apache-2.0
// The pure part of the Deployment controller: the Deployment and its ReplicaSets as they are → the steps to take now
// and the status to write. One call takes one step of a rollout; the changes it makes bring the next call.
//   plan ── create a set | scale sets | annotate | remove old sets ──▶ apply ──▶ status ──▶ (their events) ──▶ plan …
// Source: Kubernetes Deployment: rolling update within maxSurge and maxUnavailable, Recreate, proportional scaling,
// progress deadline, revision history; annotations and reasons are Kubernetes'.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "daemon/controller/common.h"

namespace coracle::controller {

inline constexpr std::string_view kHashLabel = "pod-template-hash";
inline constexpr std::string_view kRevisionAnnotation = "deployment.kubernetes.io/revision";
inline constexpr std::string_view kRevisionHistoryAnnotation = "deployment.kubernetes.io/revision-history";
inline constexpr std::string_view kDesiredAnnotation = "deployment.kubernetes.io/desired-replicas";
inline constexpr std::string_view kMaxAnnotation = "deployment.kubernetes.io/max-replicas";

struct DeploymentStep {
  enum class What { create, update, remove } what;
  ObjectPtr set;             // what there is (update, remove)
  json::value body;          // what there shall be (create, update)
  int64_t from = 0, to = 0;  // replicas; differing ones are told as an event
};

struct DeploymentPlan {
  std::vector<DeploymentStep> steps;
  std::string revision;                           // the Deployment's annotation, "" = leave it
  json::value status;                             // to be written when it differs
  std::optional<std::chrono::nanoseconds> again;  // a deadline to look at
};

struct DeploymentWorld {
  ObjectPtr deployment;
  std::vector<ObjectPtr> sets;  // those it controls
  bool old_pods_run = false;    // pods of other templates that have not finished (Recreate waits for them)
  std::function<std::chrono::nanoseconds(WallTime moment)> since = {};  // how long ago it was; absent: by the wall clock
};

DeploymentPlan plan_deployment(const DeploymentWorld& world, WallTime now);

// The suffix of a set's name and its pod-template-hash label: of the template's text and the collision count.
std::string template_hash(const json::value& pod_template, int64_t collisions);
bool same_template(const json::value& a, const json::value& b);  // the hash label aside

// The status after the name of a new set turned out to be taken by a set of another template.
json::value status_after_collision(const Object& deployment);
// The status after the API refused the new set.
json::value status_after_refusal(const Object& deployment, const std::string& message, WallTime now);

}  // namespace coracle::controller

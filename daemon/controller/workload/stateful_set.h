// SPDX-License-Identifier: Apache-2.0
// The pure part of the StatefulSet controller: the set, its pods, their claims and two revisions of its template → the steps to
// take now and the status.
//   pods 0 … n-1: replace ended ones ▸ create missing ones ▸ repair   (OrderedReady stops at the first that is not available)
//     ▸ surplus pods, last first: delete ▸ pods of another revision, last first: delete, within maxUnavailable
// The second step recreates a deleted pod with the revision that is due for its ordinal. Source: Kubernetes StatefulSet; KEP-961
// (maxUnavailable), KEP-1847 (claims' retention), KEP-3335 (first ordinal).
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/controller/shared/common.h"

namespace coracle::controller {

constexpr size_t kStatefulSetBurst = 500;  // steps per reconcile, without those that only tell
constexpr size_t kClaimsBurst = 100;       // of these, created claims: each has a copy of the set's labels

struct StatefulSetStep {
  enum class What {
    create_claim,  // body
    own_claim,     // object; body: its ownerReferences
    claims_owned,  // that was all that was to be updated of the pod
    conflict,      // object: a claim that has a controller of another kind, and is left to it
    refuse,        // the pod cannot be created now; body: the reason, a text
    create,        // body
    update,        // object; body: the new object
    remove,        // object
  } what;
  std::string pod;  // the pod that the step belongs to
  ObjectPtr object;
  json::value body;
};

struct StatefulSetPlan {
  std::vector<StatefulSetStep> steps;
  json::value status;
  std::optional<std::chrono::nanoseconds> again;  // time until the next reconcile, if no event occurs
};

struct ObservedStatefulSet {
  ObjectPtr set;
  ObjectPtr current, update;  // revisions: of pods that are not updated yet, and of the set's template
  int64_t collisions = 0;
  std::vector<ObjectPtr> pods;    // the pods it controls
  std::set<std::string> removed;  // uids of pods that are deleted although the cache does not show it yet
  std::function<ObjectPtr(const std::string& name)> claim;  // null: there is no claim with this name
  // The remaining back-off of an ended pod with this name: it is deleted after that, so that failing pods are not replaced
  // without pause. nullopt: delete it now.
  std::function<std::optional<std::chrono::nanoseconds>(const std::string& pod)> backing_off;
};

StatefulSetPlan plan_stateful_set(const ObservedStatefulSet& observed, WallTime now);
// The status of a set that is being deleted: pods are counted, and no steps are taken.
json::value ending_stateful_set_status(const Object& set, const std::vector<ObjectPtr>& pods, WallTime now);

// The ordinal in a pod's name; nullopt if it is not a name of this set's pods.
std::optional<int64_t> ordinal_of(const Object& set, std::string_view pod_name);
std::string claim_name(const Object& set, std::string_view claim_template, int64_t ordinal);
// Whether the name has the form of this set's claims, with any ordinal.
bool may_be_claim_of(const Object& set, std::string_view claim);

}  // namespace coracle::controller

// SPDX-License-Identifier: Apache-2.0
// The pure part of the StatefulSet controller: the set, its pods, their claims and two revisions of its template → the steps to
// take now and the status to write.
//   pods 0 … n-1: replace what ended ▸ make what is missing ▸ mend   (OrderedReady stops at the first that is not available)
//     ▸ pods beyond, the last first: remove ▸ pods of another revision, the last first: remove, within maxUnavailable
// A removed pod comes again by the second step, of the revision that its number is due. Source: Kubernetes StatefulSet; KEP-961
// (maxUnavailable), KEP-1847 (claims' retention), KEP-3335 (first number).
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/controller/common.h"

namespace coracle::controller {

constexpr size_t kStatefulSetBurst = 500;  // steps taken in one reconcile
constexpr size_t kClaimsBurst = 100;       // of them, claims that are made: each has a copy of the set's labels

struct StatefulSetStep {
  enum class What {
    create_claim,  // body
    own_claim,     // object; body: its ownerReferences
    refuse,        // the pod cannot be made now; body: why, a text
    create,        // body
    update,        // object; body: how it shall be
    remove,        // object
  } what;
  std::string pod;  // whose step it is
  ObjectPtr object;
  json::value body;
};

struct StatefulSetPlan {
  std::vector<StatefulSetStep> steps;
  json::value status;
  std::optional<std::chrono::nanoseconds> again;  // when to look again, whatever happens
};

struct StatefulSetWorld {
  ObjectPtr set;
  ObjectPtr current, update;  // revisions: of pods that are not to be updated yet, and of the set's template
  int64_t collisions = 0;
  std::vector<ObjectPtr> pods;                              // those it controls
  std::set<std::string> removed;                            // uids of pods that go, though they do not say so yet
  std::function<ObjectPtr(const std::string& name)> claim;  // null: there is none of this name
  // How long a pod of this name that ended still stays, lest one follows the other as fast as they fail. Nothing: it may go.
  std::function<std::optional<std::chrono::nanoseconds>(const std::string& pod)> backing_off;
};

StatefulSetPlan plan_stateful_set(const StatefulSetWorld& world, WallTime now);
// Of a set that is being deleted: its pods are counted, and nothing is done.
json::value ending_stateful_set_status(const Object& set, const std::vector<ObjectPtr>& pods, WallTime now);

// The number in the name of a pod of this set; nothing when the name is none of its names.
std::optional<int64_t> ordinal_of(const Object& set, std::string_view pod_name);
std::string claim_name(const Object& set, std::string_view claim_template, int64_t ordinal);
// The names of claims of this set look like this one, whatever the number.
bool may_be_claim_of(const Object& set, std::string_view claim);

}  // namespace coracle::controller

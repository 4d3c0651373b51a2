// SPDX-License-Identifier: Apache-2.0
// History: what StatefulSets and DaemonSets remember of the templates they have had: a ControllerRevision for each, numbered in
// the order in which they were wanted last. Shared by both; the rules are pure, and keep_history() carries them out.
//   set + its revisions ──plan_history──▶ the one with its template: there | to be numbered anew | to be made
// Source: Kubernetes ControllerRevision, pkg/controller/history (semantics).
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/controller/controller.h"
#include "store/client/client.h"
#include "store/object/selector_cache.h"

namespace coracle::controller {

inline constexpr std::string_view kRevisionLabel = "controller-revision-hash";  // of a pod: which revision it is of

// What a revision keeps of a set: the patch that puts its template back, written as Kubernetes' clients write and compare it.
json::value revision_data(const Object& set);
json::value template_of(const Object& revision);
int64_t number_of(const Object& revision);

struct HistoryPlan {
  ObjectPtr revision;                   // of the set's template; null: there is none yet
  int64_t number = 1;                   // which it shall have
  std::vector<ObjectPtr> same, others;  // besides it: of the same template; of others, the oldest first
};
// Going back to an earlier template gives its revision the highest number.
HistoryPlan plan_history(const Object& set, const std::vector<ObjectPtr>& revisions);

// Ready to be created. `hash_label`: its label for the end of its name.
json::value new_revision(const Object& set, std::string_view hash_label, int64_t number, int64_t collisions);

// Those of `old`, oldest first, that spec.revisionHistoryLimit does not keep: only ones that are not in use.
std::vector<ObjectPtr> beyond_limit(const Object& set, const std::vector<ObjectPtr>& old,
                                    const std::function<bool(const Object&)>& in_use);

// Names the sets of a kind whose history changes, but for what they have just made themselves; indexes `revisions` by controller.
void watch_history(Informer& revisions, const Kind& kind, const Informer& sets, const LookAt& look_at, SelectorCache& selectors);

struct History {
  ObjectPtr revision;                   // of the set's template
  std::vector<ObjectPtr> same, others;  // as in HistoryPlan
  int64_t collisions = 0;               // for status.collisionCount
};
// Adopts orphaned revisions that match, and makes or numbers anew the one of the set's template. `revisions` is watched.
// A name that another template has is counted as a collision. Errors: the API's.
Result<History> keep_history(Client& client, const Informer& revisions, const Object& set, std::string_view hash_label);

Result<void> remove_revisions(Client& client, const std::vector<ObjectPtr>& revisions);  // gone already is as good

}  // namespace coracle::controller

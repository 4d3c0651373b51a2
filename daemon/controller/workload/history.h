// SPDX-License-Identifier: Apache-2.0
// History: the ControllerRevisions of StatefulSets and DaemonSets, one for each template that the set has had. They are numbered
// in the order in which they were last current. The rules are pure, and keep_history() applies them.
//   set + its revisions ──plan_history──▶ the revision of its template: current | to be renumbered | to be created
// Source: Kubernetes ControllerRevision, pkg/controller/history (semantics).
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/controller/controller.h"
#include "store/client/client.h"
#include "store/object/selector_index.h"

namespace coracle::controller {

inline constexpr std::string_view kRevisionLabel = "controller-revision-hash";  // label of a pod: its revision

// The data of a set's revision: the patch that restores its template, encoded as Kubernetes does, because clients compare it.
json::value revision_data(const Object& set);
json::value template_of(const Object& revision);
int64_t number_of(const Object& revision);

struct HistoryPlan {
  ObjectPtr revision;                   // of the set's template; null: it does not exist yet
  int64_t number = 1;                   // the number that it must have
  std::vector<ObjectPtr> same, others;  // further revisions of the same template; revisions of other templates, oldest first
};
// Returning to an earlier template gives its revision the highest number.
HistoryPlan plan_history(const Object& set, const std::vector<ObjectPtr>& revisions);

// A revision to create. `hash_label`: the label for the hash in its name.
json::value new_revision(const Object& set, std::string_view hash_label, int64_t number, int64_t collisions);

// The revisions of `old` (oldest first) beyond spec.revisionHistoryLimit. Revisions in use are kept.
std::vector<ObjectPtr> beyond_limit(const Object& set, const std::vector<ObjectPtr>& old,
                                    const std::function<bool(const Object&)>& in_use);

// Enqueues the sets of a kind whose revisions change, except by their own writes. Adds the index "controller" to `revisions`.
void watch_history(Informer& revisions, const Kind& kind, const SelectorIndex& sets, const Enqueue& enqueue);

struct History {
  ObjectPtr revision;                   // of the set's template
  std::vector<ObjectPtr> same, others;  // as in HistoryPlan
  int64_t collisions = 0;               // for status.collisionCount
};
// Adopts matching orphaned revisions, and creates or renumbers the revision of the set's template. `revisions` must have been
// passed to watch_history. A name that is taken by another template counts as a collision. Errors: the API's.
Result<History> keep_history(Client& client, const Informer& revisions, const Object& set, const LabelSelector* selector,
                             std::string_view hash_label);

// Succeeds for revisions that are already deleted. Errors: the API's.
Result<void> remove_revisions(Client& client, const std::vector<ObjectPtr>& revisions);

}  // namespace coracle::controller

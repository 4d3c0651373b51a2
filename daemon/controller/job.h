// SPDX-License-Identifier: Apache-2.0
// The pure part of the Job controller. A turn goes through it in three steps, with writes between them:
//   look_at_job ─▶ facts ─▶ decide_job ─▶ pods to make or remove, what the job comes to
//     (pods are made and removed) ─▶ track_job ─▶ the status to write, pods whose finalizer may go
//     (status written, finalizers removed) ─▶ settle_counts, conclude_job ─▶ the status to write last
// A pod is counted once because its finalizer goes only after the status names it as uncounted, and its number goes up only
// when the finalizer has gone. Source: Kubernetes Jobs; KEP-2307 (tracking with finalizers), KEP-3329 (failure policy),
// KEP-3850 (back-off per index), KEP-3939 (replacement policy), KEP-3998 (success policy).
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "daemon/controller/common.h"
#include "daemon/controller/job_indexes.h"

namespace coracle::controller {

inline constexpr std::string_view kJobTracking = "batch.kubernetes.io/job-tracking";  // finalizer of a pod not counted yet
inline constexpr std::string_view kCompletionIndex = "batch.kubernetes.io/job-completion-index";
inline constexpr std::string_view kIndexFailures = "batch.kubernetes.io/job-index-failure-count";
inline constexpr std::string_view kIndexIgnoredFailures = "batch.kubernetes.io/job-index-ignored-failure-count";
inline constexpr size_t kUncountedMax = 500;     // pods on their way into the counts: their uids stand in the status
inline constexpr int64_t kJobPodsPerTurn = 500;  // made or removed
inline constexpr std::chrono::seconds kJobBackOffFirst{10}, kJobBackOffLongest{600};

bool job_condition(const Object& job, std::string_view type);  // is True
bool job_finished(const Object& job);                          // Complete or Failed
// Another controller's, by spec.managedBy.
bool job_managed_elsewhere(const Object& job);
std::optional<int64_t> completion_index(const Object& pod);
// When a pod ended: its containers, else when it stopped being ready, else when it was to be gone.
WallTime pod_ended_at(const Object& pod);

// ---- policies ----

struct FailureRule {
  std::string_view action;  // "" when no rule fits: it counts
  std::string message;      // FailJob only
  bool counts() const { return action != "Ignore"; }
};
FailureRule failure_rule(view::Job job, const Object& failed_pod);
// Which rule of the success policy is met, in words. Nothing when none is, or there is no policy.
std::optional<std::string> success_rule(view::Job job, const IndexSet& succeeded);

// ---- back-off ----

struct JobBackOff {
  int64_t failures = 0;          // since the last success
  std::optional<WallTime> last;  // failure
};
JobBackOff back_off_after(JobBackOff before, const std::vector<ObjectPtr>& succeeded, const std::vector<ObjectPtr>& failed);
std::chrono::nanoseconds back_off_span(int64_t failures);  // 10 s, 20 s, 40 s … 10 min; 0 without a failure

// ---- the turn ----

struct JobFacts {
  const Object& object;
  view::Job job;
  bool indexed, per_index;             // Indexed; with backoffLimitPerIndex
  bool only_failed_replaced;           // a pod that is ending still holds its place
  std::optional<int64_t> completions;  // nothing: a work queue
  std::vector<ObjectPtr> pods, active, terminating;
  std::set<std::string> held;                        // uids of pods that are not accounted for: the finalizer stands
  std::vector<ObjectPtr> new_succeeded, new_failed;  // ended, and not in the status in any way
  int64_t succeeded = 0, failed = 0;                 // with those
  IndexSet counted, done, failed_indexes;            // indexes that succeeded: by the status, and now; that failed
  std::map<int64_t, ObjectPtr> replaced;             // per_index: the failed pod of each index whose successor inherits its count

  bool failed_pod(const Object& pod) const;  // it failed, or counts as such
};
// `active`: neither finished nor on their way out. `held`: see there.
JobFacts look_at_job(const Object& object, std::vector<ObjectPtr> pods, std::vector<ObjectPtr> active,
                     std::set<std::string> held);

// How long ago `moment` was; `what` names it.
using Since = std::function<std::chrono::nanoseconds(const std::string& what, WallTime moment)>;

struct JobDecision {
  std::optional<Condition> end;  // what the job comes to: FailureTarget or SuccessCriteriaMet, or Failed when that stood before
  std::vector<ObjectPtr> remove;
  bool remove_uncounted = false;               // they did not fail: their finalizer goes first
  std::vector<std::optional<int64_t>> create;  // pods, by index where the job has indexes
  bool managed = false;
  std::optional<std::chrono::nanoseconds> again;
};
JobDecision decide_job(const JobFacts& facts, const JobBackOff& back_off, const Since& since);

// A pod to create, with what an index brings along.
json::value job_pod(const JobFacts& facts, std::optional<int64_t> index);

struct JobPods {  // once pods were made and removed
  int64_t active = 0, ready = 0, terminating = 0;
};
struct JobTracking {
  json::object status;
  std::vector<ObjectPtr> release;      // their finalizer may go once the status is written
  std::optional<Condition> last_word;  // Complete or Failed, once everything is counted
  std::optional<bool> suspended;       // it was just suspended, or resumed
};
JobTracking track_job(const JobFacts& facts, const JobDecision& decision, const JobPods& pods, WallTime now);

// Counts those uncounted pods that are no longer held. True: something changed.
bool settle_counts(json::object& status, const std::set<std::string>& held);
// Sets the last condition when nothing is left to wait for. True: it did.
bool conclude_job(json::object& status, const Condition& last_word, WallTime now);

}  // namespace coracle::controller

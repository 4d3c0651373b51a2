// SPDX-License-Identifier: Apache-2.0
// The pure part of the Job controller. A sync has three steps, with writes between them:
//   observe_job ─▶ ObservedJob ─▶ decide_job ─▶ pods to create or delete, how the job ends
//     (pods are created and deleted) ─▶ track_job ─▶ the status to write, pods whose finalizer may be removed
//     (status written, finalizers removed) ─▶ settle_counts, conclude_job ─▶ the last status to write
// Each pod is counted once: its finalizer is removed only after the status lists it as uncounted, and the count is increased only
// after the finalizer is removed. Source: Kubernetes Jobs; KEP-2307 (tracking with finalizers), KEP-3329 (failure policy),
// KEP-3850 (back-off per index), KEP-3939 (replacement policy), KEP-3998 (success policy).
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "daemon/controller/job/job_indexes.h"
#include "daemon/controller/shared/common.h"

namespace coracle::controller {

// Finalizer of a pod that is not counted yet.
inline constexpr std::string_view kJobTracking = "batch.kubernetes.io/job-tracking";
inline constexpr std::string_view kCompletionIndex = "batch.kubernetes.io/job-completion-index";
inline constexpr std::string_view kIndexFailures = "batch.kubernetes.io/job-index-failure-count";
inline constexpr std::string_view kIndexIgnoredFailures = "batch.kubernetes.io/job-index-ignored-failure-count";
inline constexpr size_t kUncountedMax = 500;     // pods listed as uncounted in the status
inline constexpr int64_t kJobPodsPerTurn = 500;  // created or deleted
inline constexpr std::chrono::seconds kJobBackOffFirst{10}, kJobBackOffLongest{600};

bool job_condition(const Object& job, std::string_view type);  // the condition is True
bool job_finished(const Object& job);                          // Complete or Failed
// Whether spec.managedBy names another controller.
bool job_managed_elsewhere(const Object& job);
std::optional<int64_t> completion_index(const Object& pod);
// When a pod ended: the end of its containers, else the end of its readiness, else its deletion time.
WallTime pod_ended_at(const Object& pod);

// ---- policies ----

struct FailureRule {
  std::string_view action;  // "" if no rule matches: the failure counts
  std::string message;      // FailJob only
  bool counts() const { return action != "Ignore"; }
};
FailureRule failure_rule(view::Job job, const Object& failed_pod);
// The matched rule of the success policy, as a message. nullopt if none matches or there is no policy.
std::optional<std::string> success_rule(view::Job job, const IndexSet& succeeded);

// ---- back-off ----

struct JobBackOff {
  int64_t failures = 0;          // since the last success
  std::optional<WallTime> last;  // time of the last failure
};
JobBackOff back_off_after(JobBackOff before, const std::vector<ObjectPtr>& succeeded, const std::vector<ObjectPtr>& failed);
std::chrono::nanoseconds back_off_span(int64_t failures);  // 10 s, 20 s, 40 s … 10 min; 0 without a failure

// ---- a sync ----

struct ObservedJob {
  const Object& object;
  view::Job job;
  bool indexed, per_index;             // completionMode Indexed; backoffLimitPerIndex is set
  bool only_failed_replaced;           // podReplacementPolicy Failed: a terminating pod is not replaced yet
  std::optional<int64_t> completions;  // nullopt: a work queue
  std::vector<ObjectPtr> pods, active, terminating;
  std::set<std::string> held;                        // uids of pods that are not counted yet: they have the finalizer
  std::vector<ObjectPtr> new_succeeded, new_failed;  // ended, and not in the status yet
  int64_t succeeded = 0, failed = 0;                 // including those
  IndexSet counted, done, failed_indexes;            // succeeded indexes, by the status and now; failed indexes
  // per_index: by index, the failed pod whose successor inherits its failure count.
  std::map<int64_t, ObjectPtr> replaced;

  bool failed_pod(const Object& pod) const;  // it has failed, or counts as failed
};
// `active`: neither finished nor being deleted. `held`: see ObservedJob.
ObservedJob observe_job(const Object& object, std::vector<ObjectPtr> pods, std::vector<ObjectPtr> active,
                        std::set<std::string> held);

// The time since `moment`; `what` identifies it.
using Since = std::function<std::chrono::nanoseconds(const std::string& what, WallTime moment)>;

struct JobDecision {
  // How the job ends: FailureTarget or SuccessCriteriaMet, or Failed if that was set before.
  std::optional<Condition> end;
  std::vector<ObjectPtr> remove;
  bool remove_uncounted = false;               // they have not failed: their finalizer is removed first
  std::vector<std::optional<int64_t>> create;  // pods to create, with their index in an Indexed Job
  bool managed = false;
  std::optional<std::chrono::nanoseconds> again;
};
JobDecision decide_job(const ObservedJob& observed, const JobBackOff& back_off, const Since& since);

// The pod to create, with labels and annotations of its index.
json::value job_pod(const ObservedJob& observed, std::optional<int64_t> index);

struct JobPods {  // after pods were created and deleted
  int64_t active = 0, ready = 0, terminating = 0;
};
struct JobTracking {
  json::object status;
  std::vector<ObjectPtr> release;      // pods whose finalizer may be removed after the status is written
  std::optional<Condition> last_word;  // Complete or Failed, after everything is counted
  std::optional<bool> suspended;       // set if the job was just suspended or resumed
};
JobTracking track_job(const ObservedJob& observed, const JobDecision& decision, const JobPods& pods, WallTime now);

// Counts the uncounted pods that have lost their finalizer. Returns whether the status changed.
bool settle_counts(json::object& status, const std::set<std::string>& held);
// Sets the final condition if nothing is left to wait for. Returns whether it did.
bool conclude_job(json::object& status, const Condition& last_word, WallTime now);

}  // namespace coracle::controller

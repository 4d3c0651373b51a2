// SPDX-License-Identifier: Apache-2.0
// Validation of a Job's status, which external controllers may write too: counts, indexes and conditions are consistent, and
// final conditions stay. Rules that compare only check what has changed. Source: batch/v1 API reference, JobStatus.
#include <set>

#include "runtime/base/text.h"
#include "store/kinds/job/job_indexes.h"
#include "store/kinds/job/job_kinds.h"
#include "store/schema/views.h"

namespace coracle::schema {
namespace {

class Status {
 public:
  explicit Status(const json::value& job) : job_(job) {}
  const json::value* field(std::string_view name) const { return find(job_, sub("status", name)); }
  int64_t number(std::string_view name) const { return get_int(job_, sub("status", name)); }
  std::string_view text(std::string_view name) const { return get_string(job_, sub("status", name)); }
  view::JobSpec spec() const { return view::Job(job_).spec(); }
  view::UncountedTerminatedPods uncounted_pods() const { return view::Job(job_).status().uncounted_terminated_pods(); }
  bool holds(std::string_view type) const {
    for (view::JobCondition condition : view::Job(job_).status().conditions()) {
      if (condition.type() == type && condition.status() == "True") return true;
    }
    return false;
  }
  bool finished() const { return holds("Complete") || holds("Failed"); }
  bool uncounted() const { return !uncounted_pods().failed().empty() || !uncounted_pods().succeeded().empty(); }

 private:
  const json::value& job_;
};

bool differs(const Status& now, const Status& before, std::string_view name) {
  const json::value *left = now.field(name), *right = before.field(name);
  return left && right ? !same_json(*left, *right) : left != right;
}

void check_job_counts(const Status& now, Findings& out) {
  for (std::string_view name : {"active", "succeeded", "failed", "ready", "terminating"})
    out.not_negative(sub("status", name), now.number(name));
  std::set<std::string> seen;
  for (auto [list, uids] : {std::pair("status.uncountedTerminatedPods.succeeded", now.uncounted_pods().succeeded()),
                            std::pair("status.uncountedTerminatedPods.failed", now.uncounted_pods().failed())}) {
    for (size_t i = 0; i < uids.size(); ++i) {
      std::string uid(uids[i]);
      if (uid.empty()) out.invalid(item(std::string(list), i), uid, "must not be empty");
      else if (!seen.insert(uid).second) out.duplicate(item(std::string(list), i), uid);
    }
  }
}

constexpr std::string_view kConditionsPath = "status.conditions";

void check_job_conditions(const Status& now, const Status& before, Findings& out) {
  auto changed = [&](std::string_view type) { return now.holds(type) != before.holds(type); };
  auto reject = [&](bool wrong, std::string_view words) {
    if (wrong) out.invalid_without(std::string(kConditionsPath), words);
  };
  bool complete = now.holds("Complete"), failed = now.holds("Failed"), target = now.holds("FailureTarget"),
       success = now.holds("SuccessCriteriaMet");
  reject((changed("Complete") || changed("Failed")) && complete && failed, "cannot set Complete=True and Failed=true conditions");
  reject((changed("Complete") || changed("FailureTarget")) && complete && target,
         "cannot set Complete=True and FailureTarget=true conditions");
  reject((changed("Failed") || changed("FailureTarget")) && failed && !target,
         "cannot set Failed=True condition without the FailureTarget=true condition");
  reject((changed("Complete") || changed("SuccessCriteriaMet")) && complete && !success,
         "cannot set Complete=True condition without the SuccessCriteriaMet=true condition");
  reject(success && failed, "cannot set SuccessCriteriaMet=True and Failed=true conditions");
  reject(success && target, "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions");
  reject(now.spec().has_success_policy() && !success && complete,
         "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True");
  for (std::string_view type : {"Failed", "Complete", "FailureTarget"}) {
    reject(before.holds(type) && !now.holds(type), "cannot disable the terminal " + std::string(type) + "=True condition");
  }
  reject(before.holds("SuccessCriteriaMet") && !success, "cannot disable the SuccessCriteriaMet=True condition");
  reject(before.holds("Complete") && !before.holds("SuccessCriteriaMet") && success,
         "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions");
}

void check_times(const Status& now, const Status& before, Findings& out) {
  const json::value *end = now.field("completionTime"), *start = now.field("startTime");
  const json::value *old_end = before.field("completionTime"), *old_start = before.field("startTime");
  bool complete = now.holds("Complete"), complete_changed = complete != before.holds("Complete");
  bool end_changed = differs(now, before, "completionTime"), start_changed = differs(now, before, "startTime");
  std::string at = "status.completionTime";
  if ((complete_changed || end_changed) && end && !complete) {
    out.invalid_json(at, *end, "cannot set completionTime when there is no Complete=True condition");
  }
  if ((complete_changed || end_changed) && !end && complete) out.required(at, "completionTime is required for Complete jobs");
  if ((start_changed || end_changed) && start && end && now.text("completionTime") < now.text("startTime")) {  // of one format
    out.invalid_json(at, *end, "completionTime cannot be set before startTime");
  }
  if (end && old_end && *end != *old_end) out.invalid_json(at, *end, "completionTime cannot be mutated");
  bool suspended = now.spec().suspend();
  bool nothing_to_do = suspended && now.spec().has_completions() && now.spec().completions() == 0;
  if ((now.finished() != before.finished() || start_changed) && !nothing_to_do && !start && now.finished()) {
    out.required("status.startTime", "startTime is required for finished job");
  }
  bool resumed = before.holds("Suspended") && !now.holds("Suspended");
  if (start_changed && old_start && !suspended && !resumed)
    out.required("status.startTime", "startTime cannot be removed for unsuspended job");
}

void check_end(const Status& now, const Status& before, Findings& out) {
  bool finished = now.finished(), changed = finished != before.finished();
  auto counts = [&](std::string_view name, std::string_view words) {
    if ((changed || differs(now, before, name)) && now.number(name) > 0 && finished)
      out.invalid(sub("status", name), now.number(name), words);
  };
  counts("active", "active>0 is invalid for finished job");
  counts("terminating", "terminating>0 is invalid for finished job");
  if ((changed || differs(now, before, "uncountedTerminatedPods")) && finished && now.uncounted()) {
    out.invalid_json("status.uncountedTerminatedPods", *now.field("uncountedTerminatedPods"),
                     "uncountedTerminatedPods needs to be empty for finished job");
  }
  if ((differs(now, before, "ready") || differs(now, before, "active")) && now.number("ready") > now.number("active")) {
    out.invalid("status.ready", now.number("ready"), "cannot set more ready pods than active");
  }
  if (now.number("failed") < before.number("failed"))
    out.invalid("status.failed", now.number("failed"), "cannot decrease the failed counter");
  // A Job that was scaled down has lost completed indexes, even if its parallelism was changed again since.
  int64_t completions = now.spec().completions();
  bool indexed = now.spec().completion_mode() == "Indexed";
  bool elastic = indexed && completions == now.spec().parallelism();
  bool smaller = indexed && !parse_indexes(before.text("completedIndexes"), completions).problem.empty();
  if (!elastic && !smaller && now.number("succeeded") < before.number("succeeded")) {
    out.invalid("status.succeeded", now.number("succeeded"), "cannot decrease the succeeded counter");
  }
}

void check_overlap(const Indexes& completed, const Indexes& failed, std::string_view text, Findings& out) {
  for (auto [first, last] : completed.intervals) {
    for (auto [begin, end] : failed.intervals) {
      if (first > end || begin > last) continue;
      return out.invalid("status.failedIndexes", text,
                         "failedIndexes and completedIndexes overlap at index: " + std::to_string(std::max(first, begin)));
    }
  }
}

void check_indexes(const Status& now, const Status& before, Findings& out) {
  bool completed_changed = differs(now, before, "completedIndexes"), failed_changed = differs(now, before, "failedIndexes");
  bool limit = now.spec().has_completions();
  int64_t completions = now.spec().completions();
  std::string_view completed = now.text("completedIndexes"), failed = now.text("failedIndexes");
  Indexes done = limit ? parse_indexes(completed, completions) : Indexes(),
          lost = limit ? parse_indexes(failed, completions) : Indexes();
  bool per_index = now.spec().has_backoff_limit_per_index();
  if (completed_changed && !done.problem.empty()) {
    out.invalid("status.completedIndexes", completed, "error parsing completedIndexes: " + done.problem);
  }
  if (failed_changed && per_index && !lost.problem.empty()) {
    out.invalid("status.failedIndexes", failed, "error parsing failedIndexes: " + lost.problem);
  }
  if (completed_changed && !completed.empty() && now.spec().completion_mode() != "Indexed") {
    out.invalid("status.completedIndexes", completed, "cannot set non-empty completedIndexes when non-indexed completion mode");
  }
  if (failed_changed && !per_index && now.field("failedIndexes")) {
    out.invalid("status.failedIndexes", failed, "cannot set non-null failedIndexes when backoffLimitPerIndex is null");
  }
  if (failed_changed || completed_changed) check_overlap(done, lost, failed, out);
}

}  // namespace

void check_job_status(const json::value& job, const json::value& old, Findings& out) {
  Status now(job), before(old);
  check_job_counts(now, out);
  check_job_conditions(now, before, out);
  check_times(now, before, out);
  check_end(now, before, out);
  check_indexes(now, before, out);
}

}  // namespace coracle::schema

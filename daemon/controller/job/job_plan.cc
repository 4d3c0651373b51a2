// SPDX-License-Identifier: Apache-2.0
// The plan of the Job controller. See job.h.
#include <algorithm>

#include "daemon/controller/job/job.h"
#include "daemon/controller/workload/pod_control.h"
#include "daemon/controller/workload/replica_set.h"
#include "runtime/base/text.h"

namespace coracle::controller {
namespace {

constexpr std::string_view kIndexVariable = "JOB_COMPLETION_INDEX";
constexpr size_t kGeneratedPrefixMax = 58;  // the five added characters make 63

int64_t index_failures(const Object& pod, std::string_view annotation = kIndexFailures) {
  auto count = parse_number<int32_t>(pod.annotation(annotation));
  return count && *count > 0 ? *count : 0;
}

int64_t all_index_failures(const Object& pod) { return index_failures(pod) + index_failures(pod, kIndexIgnoredFailures); }

std::set<std::string> uids(view::Range<std::string_view> list) { return {list.begin(), list.end()}; }

std::string_view phase(const Object& pod) { return view::Pod(pod).status().phase(); }

// The pod's index, if the job has it. A job without indexes may have adopted pods with indexes, which are ignored.
std::optional<int64_t> valid_index(const ObservedJob& observed, const Object& pod) {
  auto index = observed.indexed ? completion_index(pod) : std::nullopt;
  return index && observed.completions && *index < *observed.completions ? index : std::nullopt;
}

IndexSet indexes_of(const std::vector<ObjectPtr>& pods) {
  IndexSet out;
  for (const ObjectPtr& pod : pods)
    if (auto index = completion_index(*pod)) out.add(*index);
  return out;
}

void find_new_ends(ObservedJob& observed) {
  view::UncountedTerminatedPods uncounted = observed.job.status().uncounted_terminated_pods();
  std::set<std::string> succeeded = uids(uncounted.succeeded()), failed = uids(uncounted.failed());
  observed.succeeded = observed.job.status().succeeded() + int64_t(succeeded.size());
  observed.failed = observed.job.status().failed() + int64_t(failed.size());
  for (const ObjectPtr& pod : observed.pods) {
    if (!observed.held.contains(pod->uid()) || (observed.indexed && !valid_index(observed, *pod))) continue;
    if (phase(*pod) == "Succeeded" && !succeeded.contains(pod->uid())) observed.new_succeeded.push_back(pod);
    if (observed.failed_pod(*pod) && !failed.contains(pod->uid())) observed.new_failed.push_back(pod);
  }
  observed.succeeded += int64_t(observed.new_succeeded.size());
  for (const ObjectPtr& pod : observed.new_failed) observed.failed += failure_rule(observed.job, *pod).counts();
}

bool fails_its_index(const ObservedJob& observed, const Object& pod) {
  if (!observed.failed_pod(pod)) return false;
  FailureRule rule = failure_rule(observed.job, pod);
  return rule.action == "FailIndex" || (rule.counts() && index_failures(pod) >= observed.job.spec().backoff_limit_per_index());
}

// Finds the last failed pod of each index without an active pod: its finalizer is kept until the successor has inherited its
// count.
void find_replaced(ObservedJob& observed) {
  IndexSet active = indexes_of(observed.active);
  for (const ObjectPtr& pod : observed.pods) {
    auto index = valid_index(observed, *pod);
    if (!index || !observed.held.contains(pod->uid()) || !observed.failed_pod(*pod)) continue;
    if (observed.done.contains(*index) || observed.failed_indexes.contains(*index) || active.contains(*index)) continue;
    ObjectPtr& last = observed.replaced[*index];
    bool later = !last || (all_index_failures(*last) <= all_index_failures(*pod) && pod_ended_at(*last) <= pod_ended_at(*pod));
    if (later) last = pod;
  }
}

void find_indexes(ObservedJob& observed) {
  observed.counted = IndexSet::parse(observed.job.status().completed_indexes(), *observed.completions);
  observed.done = observed.counted;
  for (const ObjectPtr& pod : observed.pods) {
    auto index = valid_index(observed, *pod);
    if (index && observed.held.contains(pod->uid()) && phase(*pod) == "Succeeded") observed.done.add(*index);
  }
  observed.succeeded = observed.done.size();
  if (!observed.per_index) return;
  observed.failed_indexes = IndexSet::parse(observed.job.status().failed_indexes(), *observed.completions);
  for (const ObjectPtr& pod : observed.pods) {
    auto index = valid_index(observed, *pod);
    if (index && observed.held.contains(pod->uid()) && fails_its_index(observed, *pod)) observed.failed_indexes.add(*index);
  }
  find_replaced(observed);
}

// ---- decide ----

// With restartPolicy OnFailure, container restarts count towards the limit.
bool restarted_too_often(const ObservedJob& observed) {
  if (observed.job.spec().template_().spec().restart_policy() != "OnFailure") return false;
  int64_t restarts = 0, limit = observed.job.spec().backoff_limit();
  for (const ObjectPtr& object : observed.pods) {
    view::Pod pod(*object);
    if (phase(*object) != "Running" && phase(*object) != "Pending") continue;
    for (view::ContainerStatus status : pod.status().init_container_statuses()) restarts += status.restart_count();
    for (view::ContainerStatus status : pod.status().container_statuses()) restarts += status.restart_count();
  }
  return limit == 0 ? restarts > 0 : restarts >= limit;
}

std::optional<Condition> earlier_end(const ObservedJob& observed) {
  for (std::string_view type : {"SuccessCriteriaMet", "FailureTarget"}) {
    view::JobCondition found(find_condition(observed.object.json(), type));
    if (found.status() != "True") continue;
    return Condition{type == "FailureTarget" ? "Failed" : std::string(type), "True", std::string(found.reason()),
                     std::string(found.message())};
  }
  return std::nullopt;
}

Condition failure(std::string reason, std::string message) {
  return {"FailureTarget", "True", std::move(reason), std::move(message)};
}

std::optional<Condition> end_by_failure(const ObservedJob& observed) {
  if (observed.job.spec().has_pod_failure_policy()) {
    for (const ObjectPtr& pod : observed.pods) {
      if (!observed.failed_pod(*pod)) continue;
      FailureRule rule = failure_rule(observed.job, *pod);
      if (!rule.message.empty()) return failure("PodFailurePolicy", rule.message);
    }
  }
  if (observed.failed > observed.job.spec().backoff_limit() || restarted_too_often(observed))
    return failure("BackoffLimitExceeded", "Job has reached the specified backoff limit");
  return std::nullopt;
}

std::optional<Condition> end_by_indexes(const ObservedJob& observed) {
  view::JobSpec spec = observed.job.spec();
  int64_t failed = observed.failed_indexes.size();
  if (observed.per_index && spec.has_max_failed_indexes() && failed > spec.max_failed_indexes())
    return failure("MaxFailedIndexesExceeded", "Job has exceeded the specified maximal number of failed indexes");
  if (failed > 0 && failed + observed.done.size() >= *observed.completions)
    return failure("FailedIndexes", "Job has failed indexes");
  if (auto met = success_rule(observed.job, observed.done)) return Condition{"SuccessCriteriaMet", "True", "SuccessPolicy", *met};
  return std::nullopt;
}

void sooner(std::optional<std::chrono::nanoseconds>& again, std::chrono::nanoseconds span) {
  if (!again || span < *again) again = span;
}

std::optional<Condition> end_by_deadline(const ObservedJob& observed, const Since& since, JobDecision& decision) {
  view::JobSpec spec = observed.job.spec();
  if (!spec.has_active_deadline_seconds() || spec.suspend()) return std::nullopt;
  std::chrono::nanoseconds deadline = bounded_seconds(spec.active_deadline_seconds());
  auto start = parse_time(observed.job.status().start_time());
  std::chrono::nanoseconds left = start ? deadline - since("start", *start) : deadline;
  if (left.count() <= 0) return failure("DeadlineExceeded", "Job was active longer than specified deadline");
  sooner(decision.again, left);
  return std::nullopt;
}

// The active pods to delete if `count` must go. Duplicates of an index and pods with an invalid index are deleted in any case.
std::vector<ObjectPtr> active_pods_to_remove(const ObservedJob& observed, int64_t count) {
  std::vector<ObjectPtr> remove, left;
  if (!observed.indexed) {
    left = observed.active;
  } else {
    std::map<int64_t, std::vector<ObjectPtr>> by_index;
    for (const ObjectPtr& pod : observed.active) {
      if (auto index = valid_index(observed, *pod)) by_index[*index].push_back(pod);
      else remove.push_back(pod);
    }
    for (auto& [index, pods] : by_index) {
      std::vector<ObjectPtr> extra = plan_replica_set(1, pods, {}).remove;
      auto stays = [&](const ObjectPtr& pod) { return std::find(extra.begin(), extra.end(), pod) == extra.end(); };
      for (const ObjectPtr& pod : pods) (stays(pod) ? left : remove).push_back(pod);
    }
  }
  int64_t more = std::min(count - int64_t(remove.size()), int64_t(left.size()));
  if (more > 0) {
    std::vector<ObjectPtr> last = plan_replica_set(int64_t(left.size()) - more, left, {}).remove;
    remove.insert(remove.end(), last.begin(), last.end());
  }
  if (int64_t(remove.size()) > kJobPodsPerTurn) remove.resize(size_t(kJobPodsPerTurn));
  return remove;
}

// Indexes without a pod whose back-off is over.
void create_indexes(const ObservedJob& observed, int64_t count, const Since& since, JobDecision& decision) {
  IndexSet taken = observed.done;
  taken.add(indexes_of(observed.active));
  taken.add(observed.failed_indexes);
  if (observed.only_failed_replaced) taken.add(indexes_of(observed.terminating));
  for (int64_t index : taken.first_missing(count, *observed.completions)) {
    auto before = observed.replaced.find(index);
    if (before != observed.replaced.end()) {
      const Object& pod = *before->second;
      auto left = back_off_span(all_index_failures(pod) + 1) - since(pod.uid(), pod_ended_at(pod));
      if (left.count() > 0) {
        sooner(decision.again, left);
        continue;
      }
    }
    decision.create.push_back(index);
  }
}

void manage_pods(const ObservedJob& observed, const JobBackOff& back_off, const Since& since, JobDecision& decision) {
  decision.managed = true;
  decision.remove_uncounted = true;
  int64_t active = int64_t(observed.active.size()), wanted = observed.job.spec().parallelism();
  if (observed.job.spec().suspend()) {
    decision.remove = active_pods_to_remove(observed, active);
    return;
  }
  if (!observed.completions && observed.succeeded > 0) wanted = active;  // running pods may finish, but no new ones are created
  if (observed.completions) wanted = std::clamp<int64_t>(*observed.completions - observed.succeeded, 0, wanted);
  decision.remove = active_pods_to_remove(observed, std::max<int64_t>(active - wanted, 0));
  if (!decision.remove.empty()) return;  // never both in one sync

  int64_t missing = wanted - active - (observed.only_failed_replaced ? int64_t(observed.terminating.size()) : 0);
  if (missing <= 0) return;
  if (!observed.per_index && back_off.last) {
    auto left = back_off_span(back_off.failures) - since("failure", *back_off.last);
    if (left.count() > 0) return sooner(decision.again, left);
  }
  missing = std::min(missing, kJobPodsPerTurn);
  if (observed.indexed) create_indexes(observed, missing, since, decision);
  else decision.create.resize(size_t(missing));
}

// ---- track ----

// Returns whether the list was changed. A False condition that never existed is not added.
bool set_job_condition(json::object& status, const Condition& condition, WallTime now) {
  json::array conditions = view::JobStatus(status).conditions().raw();
  auto* present = const_cast<json::value*>(find_condition(conditions, condition.type));
  if (!present && condition.status == "False") return false;
  view::JobCondition before(present);
  bool unchanged = present && before.status() == condition.status && before.reason() == condition.reason &&
                   before.message() == condition.message;
  if (unchanged) return false;
  json::object fresh{{"type", condition.type},
                     {"status", condition.status},
                     {"lastProbeTime", format_time(now)},
                     {"lastTransitionTime", format_time(now)},
                     {"reason", condition.reason},
                     {"message", condition.message}};
  if (present) *present = std::move(fresh);
  else conditions.push_back(std::move(fresh));
  status["conditions"] = std::move(conditions);
  return true;
}

bool may_release(const ObservedJob& observed, const std::optional<Condition>& end, const Object& pod) {
  if (observed.object.deleting() || end || phase(pod) == "Succeeded") return true;
  if (!observed.failed_pod(pod)) return false;
  auto index = valid_index(observed, pod);
  auto replaced = index ? observed.replaced.find(*index) : observed.replaced.end();
  return replaced == observed.replaced.end() || replaced->second->uid() != pod.uid();
}

std::vector<ObjectPtr> pods_by_index(const ObservedJob& observed) {
  std::vector<ObjectPtr> pods = observed.pods;
  if (observed.indexed) {
    std::stable_sort(pods.begin(), pods.end(), [](const ObjectPtr& a, const ObjectPtr& b) {
      return completion_index(*a).value_or(-1) < completion_index(*b).value_or(-1);
    });
  }
  return pods;
}

// Records ended pods, and collects those whose finalizer may be removed. False: there are more than fit in one status.
bool note_ends(const ObservedJob& observed, const std::optional<Condition>& end, JobTracking& out) {
  view::UncountedTerminatedPods before = observed.job.status().uncounted_terminated_pods();
  std::set<std::string> known_succeeded = uids(before.succeeded()), known_failed = uids(before.failed());
  view::UncountedTerminatedPods listed = view::JobStatus(out.status).uncounted_terminated_pods();
  json::array succeeded = listed.succeeded().raw(), failed = listed.failed().raw();
  IndexSet done = observed.counted;
  bool all = true;
  for (const ObjectPtr& pod : pods_by_index(observed)) {
    if (!observed.held.contains(pod->uid()) || !may_release(observed, end, *pod)) continue;
    out.release.push_back(pod);
    auto index = valid_index(observed, *pod);
    bool ends_failed = end && end->type != "SuccessCriteriaMet";  // then pods that have not ended count as failed
    if (phase(*pod) == "Succeeded" && !known_failed.contains(pod->uid())) {
      if (index) done.add(*index);  // an index cannot be counted twice
      else if (!observed.indexed && !known_succeeded.contains(pod->uid())) succeeded.emplace_back(pod->uid());
    } else if ((observed.failed_pod(*pod) || ends_failed) && !known_failed.contains(pod->uid()) && (!observed.indexed || index)) {
      if (failure_rule(observed.job, *pod).counts()) failed.emplace_back(pod->uid());
    }
    if (succeeded.size() + failed.size() + size_t(done.size() - observed.counted.size()) < kUncountedMax) continue;
    all = false;
    break;
  }
  json::object uncounted;
  if (!succeeded.empty()) uncounted["succeeded"] = std::move(succeeded);
  if (!failed.empty()) uncounted["failed"] = std::move(failed);
  out.status["uncountedTerminatedPods"] = std::move(uncounted);
  if (!observed.indexed) return all;
  set_count(out.status, "succeeded", done.size());
  if (done.empty()) out.status.erase("completedIndexes");
  else out.status["completedIndexes"] = done.text();
  if (observed.per_index) out.status["failedIndexes"] = observed.failed_indexes.text();
  return all;
}

bool reached(const ObservedJob& observed, int64_t active) {
  if (active > 0) return false;
  return observed.completions ? observed.succeeded >= *observed.completions : observed.succeeded > 0;
}

// A resumed job starts again: its deadline does not run while it is suspended.
void note_suspension(const ObservedJob& observed, JobTracking& out, WallTime now) {
  bool suspend = observed.job.spec().suspend();
  if (suspend) out.status.erase("startTime");
  Condition condition = suspend ? Condition{"Suspended", "True", "JobSuspended", "Job suspended"}
                                : Condition{"Suspended", "False", "JobResumed", "Job resumed"};
  if (!set_job_condition(out.status, condition, now)) return;
  out.suspended = suspend;
  if (!suspend) out.status["startTime"] = format_time(now);
}

}  // namespace

bool job_condition(const Object& job, std::string_view type) {
  return view::JobCondition(find_condition(job.json(), type)).status() == "True";
}

bool job_finished(const Object& job) { return job_condition(job, "Complete") || job_condition(job, "Failed"); }

bool job_managed_elsewhere(const Object& job) {
  std::string_view manager = view::Job(job).spec().managed_by();
  return !manager.empty() && manager != "kubernetes.io/job-controller";
}

std::optional<int64_t> completion_index(const Object& pod) {
  auto index = parse_number<int32_t>(pod.annotation(kCompletionIndex));
  return index && *index >= 0 ? std::optional<int64_t>(*index) : std::nullopt;
}

bool ObservedJob::failed_pod(const Object& pod) const {
  if (phase(pod) == "Failed") return true;
  return !only_failed_replaced && pod.deleting() && phase(pod) != "Succeeded";
}

ObservedJob observe_job(const Object& object, std::vector<ObjectPtr> pods, std::vector<ObjectPtr> active,
                        std::set<std::string> held) {
  view::Job job(object);
  view::JobSpec spec = job.spec();
  bool indexed = spec.completion_mode() == "Indexed";
  ObservedJob observed{.object = object,
                       .job = job,
                       .indexed = indexed,
                       .per_index = indexed && spec.has_backoff_limit_per_index(),
                       .only_failed_replaced = spec.pod_replacement_policy() == "Failed" || spec.has_pod_failure_policy(),
                       .pods = std::move(pods),
                       .active = std::move(active),
                       .held = std::move(held)};
  if (spec.has_completions()) observed.completions = spec.completions();
  std::set<ObjectPtr> runs(observed.active.begin(), observed.active.end());
  for (const ObjectPtr& pod : observed.pods)
    if (!is_terminal(view::Pod(*pod)) && !runs.contains(pod)) observed.terminating.push_back(pod);
  find_new_ends(observed);
  if (indexed) find_indexes(observed);
  return observed;
}

JobDecision decide_job(const ObservedJob& observed, const JobBackOff& back_off, const Since& since) {
  JobDecision decision;
  decision.end = earlier_end(observed);
  if (!decision.end) decision.end = end_by_failure(observed);
  if (!decision.end) decision.end = end_by_deadline(observed, since, decision);
  if (!decision.end && observed.indexed) decision.end = end_by_indexes(observed);
  if (decision.end) decision.remove = observed.active;
  else if (!observed.object.deleting()) manage_pods(observed, back_off, since, decision);
  return decision;
}

json::value job_pod(const ObservedJob& observed, std::optional<int64_t> index) {
  json::value pod = pod_from_template(observed.object, observed.job.spec().template_().raw());
  json::object& metadata = pod.at("metadata").get_object();
  json::array finalizers = view::ObjectMeta(metadata).finalizers().raw();
  bool there = std::find(finalizers.begin(), finalizers.end(), json::value(kJobTracking)) != finalizers.end();
  if (!there) finalizers.emplace_back(kJobTracking);
  metadata["finalizers"] = std::move(finalizers);
  if (!index) return pod;

  std::string number = std::to_string(*index), tail = "-" + number + "-";
  metadata["generateName"] = observed.object.name().substr(0, kGeneratedPrefixMax - tail.size()) + tail;
  json::object& annotations = make_object(pod, "metadata.annotations");
  annotations[kCompletionIndex] = number;
  make_object(pod, "metadata.labels")[kCompletionIndex] = number;
  make(pod, "spec.hostname") = observed.object.name() + "-" + number;
  for (const char* list : {"initContainers", "containers"}) {
    json::value* containers = pod.at("spec").as_object().if_contains(list);
    if (!containers || !containers->is_array()) continue;
    for (json::value& container : containers->get_array()) {
      json::array& list_of = make_array(container, "env");
      auto is_index = [](const json::value& variable) { return view::EnvVar(variable).name() == kIndexVariable; };
      if (std::any_of(list_of.begin(), list_of.end(), is_index)) continue;
      std::string field = "metadata.labels['" + std::string(kCompletionIndex) + "']";
      list_of.push_back({{"name", kIndexVariable}, {"valueFrom", {{"fieldRef", {{"fieldPath", field}}}}}});
    }
  }
  if (!observed.per_index) return pod;
  int64_t failures = 0, ignored = 0;
  if (auto before = observed.replaced.find(*index); before != observed.replaced.end()) {
    bool counts = failure_rule(observed.job, *before->second).counts();
    failures = index_failures(*before->second) + (counts ? 1 : 0);
    ignored = index_failures(*before->second, kIndexIgnoredFailures) + (counts ? 0 : 1);
  }
  json::object& counted = make_object(pod, "metadata.annotations");
  counted[kIndexFailures] = std::to_string(failures);
  if (ignored > 0) counted[kIndexIgnoredFailures] = std::to_string(ignored);
  return pod;
}

JobTracking track_job(const ObservedJob& observed, const JobDecision& decision, const JobPods& pods, WallTime now) {
  JobTracking out;
  if (const json::object* present = observed.job.status().raw().if_object()) out.status = *present;
  std::optional<Condition> end = decision.end;
  if (end && pods.active > 0) end.reset();  // only after all pods were told to end
  if (!end && !decision.end && reached(observed, pods.active))
    end = Condition{"SuccessCriteriaMet", "True", "CompletionsReached", "Reached expected number of succeeded pods"};
  bool begins =
      !observed.job.spec().suspend() || (end && observed.completions != 0);  // a job that ends while suspended has started before
  if (!observed.job.status().has_start_time() && begins) out.status["startTime"] = format_time(now);
  if (!end && decision.managed) note_suspension(observed, out, now);
  set_count(out.status, "active", pods.active);
  out.status["ready"] = pods.ready;
  out.status["terminating"] = pods.terminating;
  settle_counts(out.status, observed.held);
  bool all = note_ends(observed, end, out);
  if (!end) return out;
  if (end->type != "Failed") set_job_condition(out.status, *end, now);
  if (all)
    out.last_word = Condition{end->type == "SuccessCriteriaMet" ? "Complete" : "Failed", "True", end->reason, end->message};
  return out;
}

bool settle_counts(json::object& status, const std::set<std::string>& held) {
  bool changed = false;
  json::object uncounted;
  auto settle = [&](std::string_view list, const json::array& before, int64_t counted) {
    json::array left;
    int64_t gone = 0;
    for (const json::value& uid : before) {
      if (uid.is_string() && held.contains(std::string(uid.get_string()))) left.push_back(uid);
      else ++gone;
    }
    if (gone > 0) status[list] = counted + gone;
    changed |= gone > 0;
    if (!left.empty()) uncounted[list] = std::move(left);
  };
  view::UncountedTerminatedPods before = view::JobStatus(status).uncounted_terminated_pods();
  const json::array succeeded = before.succeeded().raw(), failed = before.failed().raw();  // copies: the status is changed
  settle("succeeded", succeeded, view::JobStatus(status).succeeded());
  settle("failed", failed, view::JobStatus(status).failed());
  status["uncountedTerminatedPods"] = std::move(uncounted);
  return changed;
}

bool conclude_job(json::object& status, const Condition& last_word, WallTime now) {
  view::JobStatus before(status);
  if (!before.uncounted_terminated_pods().members().empty() || before.terminating() > 0) return false;
  bool set = set_job_condition(status, last_word, now);
  if (last_word.type == "Complete") {
    auto began = parse_time(view::JobStatus(status).start_time());  // perhaps recorded by a clock that was ahead
    status["completionTime"] = format_time(began ? std::max(*began, now) : now);
  }
  return set;
}

}  // namespace coracle::controller

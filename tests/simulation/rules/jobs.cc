// SPDX-License-Identifier: Apache-2.0
// Jobs: no pod is created for a slot that is taken, for a finished index, or for a suspended or finished job, according to what
// the daemon could know. Every ended pod is counted once: its finalizer is removed when the status lists it, or when it need not
// be counted; the counter rises after the finalizer is gone; and the pod is never listed again. A finished job keeps its result.
// At rest, the status is correct, a job that can finish has the right result, and one whose TTL has passed is gone. Source:
// Kubernetes Jobs; KEP-2307 (tracking with finalizers), KEP-3329, KEP-3850, KEP-3939, KEP-3998; TTL-after-finished.
#include "tests/simulation/rules/jobs.h"

#include <algorithm>
#include <optional>
#include <set>

#include "runtime/base/text.h"
#include "store/object/selector.h"
#include "tests/simulation/nodes.h"

namespace coracle::simulation {
namespace {

constexpr std::string_view kTracking = "batch.kubernetes.io/job-tracking", kIndex = "batch.kubernetes.io/job-completion-index";

using Indexes = std::set<int64_t>;
using Uids = std::set<std::string>;

Indexes indexes(std::string_view text) {  // "1,3-5"
  Indexes out;
  for (std::string_view part : split(text, ',')) {
    std::vector<std::string_view> ends = split(part, '-');
    auto first = parse_number<int64_t>(ends.front()), last = parse_number<int64_t>(ends.back());
    if (first && last)
      for (int64_t i = *first; i <= *last; ++i) out.insert(i);
  }
  return out;
}

bool holds(const Object& pod) {
  const json::array& all = get_array(pod.json(), "metadata.finalizers");
  return std::find(all.begin(), all.end(), json::value(kTracking)) != all.end();
}

bool ending(const Object& job) {
  return over(job) || has_condition(job, "FailureTarget") || has_condition(job, "SuccessCriteriaMet");
}
bool phase(const Object& pod, std::string_view name) { return get_string(pod.json(), "status.phase") == name; }

int64_t spec(const Object& job, const std::string& name, int64_t otherwise = 0) {
  return get_int(job.json(), "spec." + name, otherwise);
}
int64_t status(const Object& job, const std::string& name) { return get_int(job.json(), "status." + name); }
bool has(const Object& job, const std::string& name) { return find(job.json(), "spec." + name) != nullptr; }
bool indexed(const Object& job) { return get_string(job.json(), "spec.completionMode") == "Indexed"; }
bool suspended(const Object& job) { return get_bool(job.json(), "spec.suspend"); }
std::optional<int64_t> completions(const Object& job) {
  return has(job, "completions") ? std::optional(spec(job, "completions")) : std::nullopt;
}
Indexes done(const Object& job) { return indexes(get_string(job.json(), "status.completedIndexes")); }
Indexes given_up(const Object& job) { return indexes(get_string(job.json(), "status.failedIndexes")); }
// A terminating pod keeps its slot until it has ended.
bool waits_for_the_end(const Object& job) {
  return has(job, "podFailurePolicy") || get_string(job.json(), "spec.podReplacementPolicy") == "Failed";
}

Uids uncounted(const Object& job, const std::string& list) {
  Uids out;
  for (const json::value& uid : get_array(job.json(), "status.uncountedTerminatedPods." + list)) out.emplace(uid.as_string());
  return out;
}
Uids without(const Uids& all, const Uids& taken) {
  Uids out;
  std::set_difference(all.begin(), all.end(), taken.begin(), taken.end(), std::inserter(out, out.end()));
  return out;
}

std::optional<int64_t> index_of(const Object& pod) { return parse_number<int64_t>(pod.annotation(kIndex)); }
bool has_place(const Object& job, const Object& pod) {  // its index is one of the job's; true for a job without indexes
  auto index = index_of(pod);
  return !indexed(job) || (index && *index < completions(job).value_or(0));
}

// The job's failure policy ignores this failure.
bool ignored(const Object& job, const Object& pod) {
  for (const json::value& rule : get_array(job.json(), "spec.podFailurePolicy.rules")) {
    bool fits = false;
    for (const json::value& pattern : get_array(rule, "onPodConditions")) fits |= has_condition(pod, get_string(pattern, "type"));
    for (const json::value& container : get_array(pod.json(), "status.containerStatuses")) {
      int64_t code = get_int(container, "state.terminated.exitCode");
      const json::array& named = get_array(rule, "onExitCodes.values");
      bool is_named = std::find(named.begin(), named.end(), json::value(code)) != named.end();
      fits |= code != 0 && !named.empty() && is_named == (get_string(rule, "onExitCodes.operator") == "In");
    }
    if (fits) return get_string(rule, "action") == "Ignore";
  }
  return false;
}

struct Ledger {
  struct Ended {
    bool well;
    std::optional<int64_t> index;
    Revision at;
  };
  struct Counted {
    bool well;
    Revision at;  // revision of the job whose status listed it
  };
  std::map<std::string, Ended> ended;      // by uid: pods that ended while they had the job's finalizer
  std::map<std::string, Counted> counted;  // counted in the status
  Uids excused;                            // released without counting
  bool resized = false;                    // finished indexes may become unfinished
};

ObjectPtr job_of(const ClusterState& cluster_state, const Object& pod) {
  auto owner = pod.controller();
  if (!owner || owner->kind != kJob.kind) return nullptr;
  ObjectPtr job = cluster_state.find(kJob, {pod.ns(), owner->name});
  return job && job->uid() == owner->uid ? job : nullptr;
}

class JobsRule : public Rule {
 public:
  void after(const ClusterState& cluster_state, Actor actor, const Change& change) override {
    if (*change.kind == kPod) {
      if (actor == Actor::daemon && !change.before) check_creation(cluster_state, *change.after);
      if (change.before && holds(*change.before) && (!change.after || !holds(*change.after)))
        check_release(cluster_state, actor, change);
      if (change.after) note_end(cluster_state, *change.after, change.revision);
    } else if (*change.kind == kJob) {
      if (change.before && change.after && change.before->uid() == change.after->uid())
        check_status(cluster_state, actor, change);
      if (change.before && !change.after) ledgers_.erase(change.before->uid());
      if (actor == Actor::daemon && change.before && !change.before->deleting() && (!change.after || change.after->deleting()))
        check_removal(cluster_state, *change.before);
    }
  }

  // The job's last status and the end of a pod may be lost; a pod's finalizer is not removed a second time.
  void after_power_loss(const ClusterState& cluster_state) override {
    std::map<std::string, ObjectPtr> jobs, pods;
    for (const ObjectPtr& job : cluster_state.all(kJob)) jobs[job->uid()] = job;
    for (const ObjectPtr& pod : cluster_state.all(kPod)) pods[pod->uid()] = pod;
    std::erase_if(ledgers_, [&](const auto& entry) { return !jobs.contains(entry.first); });
    for (auto& [uid, ledger] : ledgers_) {
      std::erase_if(ledger.counted, [&](const auto& entry) { return entry.second.at > jobs[uid]->revision(); });
      std::erase_if(ledger.ended, [&](const auto& entry) {
        return pods.contains(entry.first) && entry.second.at > pods[entry.first]->revision();
      });
    }
  }

  void at_rest(const ClusterState& cluster_state) override {
    for (const ObjectPtr& pod : cluster_state.all(kPod)) {
      if (!holds(*pod)) continue;
      ObjectPtr job = job_of(cluster_state, *pod);
      if (!job || over(*job)) return cluster_state.violated("jobs: " + pod->key().text() + " is held, and no job wants it");
      if (finished(*pod) && !waits_for_another(cluster_state, *pod))
        return cluster_state.violated("jobs: " + pod->key().text() + " has ended, and is still held");
    }
    for (const ObjectPtr& job : cluster_state.all(kJob)) check_rest(cluster_state, *job);
  }

 private:
  // ---- creation of a pod ----

  static void check_creation(const ClusterState& cluster_state, const Object& pod) {
    auto owner = pod.controller();
    if (!owner || owner->kind != kJob.kind) return;
    std::string why = "for a job that the daemon knows is gone";
    for (const ObjectPtr& job : cluster_state.believable_owner(kJob, pod)) {
      why = against_creation(cluster_state, *job, pod);
      if (why.empty()) break;
    }
    if (why.empty() && !holds(pod)) why = "which is not held";
    if (!why.empty()) cluster_state.violated("jobs: made " + pod.key().text() + ", " + why);
  }

  static std::string against_creation(const ClusterState& cluster_state, const Object& job, const Object& pod) {
    if (job.deleting()) return "whose job is being deleted";
    if (ending(job)) return "whose job has come to its end";
    if (suspended(job)) return "whose job is suspended";
    if (!has_place(job, pod)) return "which has no index";
    auto index = indexed(job) ? index_of(pod) : std::nullopt;
    if (index && done(job).contains(*index)) return "whose index is done";
    if (index && given_up(job).contains(*index)) return "whose index was given up";
    int64_t there = 0;
    for (const ObjectPtr& other : cluster_state.controlled(kPod, job)) {
      bool stays = active(*other) || (waits_for_the_end(job) && !finished(*other));
      if (!stays || (other->uid() != pod.uid() && cluster_state.daemon_unaware_of(*other))) continue;
      there++;
      if (index && other->uid() != pod.uid() && index_of(*other) == index) return "whose index " + other->key().text() + " has";
    }
    int64_t most = spec(job, "parallelism", 1);
    if (there > most) return "the " + std::to_string(there) + ". of " + std::to_string(most) + " at a time";
    auto all_done = done(job);  // after scaling down also indexes beyond the new size
    int64_t valid = std::count_if(all_done.begin(), all_done.end(),
                                  [&](int64_t each) { return completions(job) && each < *completions(job); });
    int64_t counted = indexed(job) ? valid : status(job, "succeeded") + int64_t(uncounted(job, "succeeded").size());
    if (completions(job) && there + counted > *completions(job))
      return "the " + std::to_string(there + counted) + ". of " + std::to_string(*completions(job));
    if (!completions(job) && counted > 0) return "whose job has nothing more to do";
    return "";
  }

  // ---- end of a pod, and removal of its finalizer ----

  void note_end(const ClusterState& cluster_state, const Object& pod, Revision at) {
    if (!finished(pod) || !holds(pod)) return;
    if (ObjectPtr job = job_of(cluster_state, pod))
      ledgers_[job->uid()].ended.try_emplace(pod.uid(), phase(pod, "Succeeded"), index_of(pod), at);
  }

  void check_release(const ClusterState& cluster_state, Actor actor, const Change& change) {
    const Object& pod = *change.before;
    ObjectPtr job = job_of(cluster_state, pod);
    if (!job || over(*job)) return;
    if (actor != Actor::daemon) return cluster_state.violated("jobs: somebody else let go of " + pod.key().text());
    if (is_counted(*job, pod)) return;
    std::vector<ObjectPtr> pods = cluster_state.believable(kPod, pod.key());
    std::erase_if(pods, [&](const ObjectPtr& each) { return each->uid() != pod.uid(); });
    pods.push_back(change.before);
    for (const ObjectPtr& each : cluster_state.believable_owner(kJob, pod))
      for (const ObjectPtr& seen : pods)
        if (need_not_count(cluster_state, *each, *seen, change.after.get()))
          return void(ledgers_[job->uid()].excused.insert(pod.uid()));
    cluster_state.violated("jobs: let go of " + pod.key().text() + " (" + std::string(get_string(pod.json(), "status.phase")) +
                           "), which is not counted");
  }

  bool is_counted(const Object& job, const Object& pod) const {
    auto ledger = ledgers_.find(job.uid());
    if (ledger != ledgers_.end() && ledger->second.counted.contains(pod.uid())) return true;
    if (uncounted(job, "succeeded").contains(pod.uid()) || uncounted(job, "failed").contains(pod.uid())) return true;
    return indexed(job) && phase(pod, "Succeeded") && index_of(pod) && done(job).contains(*index_of(pod));
  }

  // A pod that is not needed any more may go uncounted before it has ended; a failed pod, if the failure is ignored.
  bool need_not_count(const ClusterState& cluster_state, const Object& job, const Object& pod, const Object* afterwards) const {
    auto selector = LabelSelector::from_json(find(job.json(), "spec.selector"));
    bool let_go_of = !afterwards || !afterwards->controller();  // nothing is left of a terminating one
    if (let_go_of && selector && !selector->matches(pod)) return true;
    if (!has_place(job, pod)) return true;
    if (finished(pod)) return phase(pod, "Failed") && ignored(job, pod);
    auto now = cluster_state.find(kJob, job.key());
    auto is = [&](const char* type) {
      return has_condition(job, type) || (now && now->uid() == job.uid() && has_condition(*now, type));
    };
    if (job.deleting() || suspended(job) || is("SuccessCriteriaMet")) return true;
    if (is("FailureTarget") && ignored(job, pod)) return true;  // it fails together with its Job
    return too_many(cluster_state, job, pod);
  }

  bool too_many(const ClusterState& cluster_state, const Object& job, const Object& pod) const {
    int64_t there = 1;
    for (const ObjectPtr& other : cluster_state.controlled(kPod, job)) {
      if (other->uid() == pod.uid()) continue;
      std::vector<ObjectPtr> seen = cluster_state.believable(kPod, other->key());
      bool runs = std::any_of(seen.begin(), seen.end(),
                              [&](const ObjectPtr& each) { return each->uid() == other->uid() && active(*each); });
      if (runs && indexed(job) && index_of(*other) == index_of(pod)) return true;
      there += runs;
    }
    int64_t most = spec(job, "parallelism", 1);
    if (completions(job)) most = std::min(most, *completions(job) - succeeded_at_most(job));
    return there > most;
  }
  int64_t succeeded_at_most(const Object& job) const {
    auto found = ledgers_.find(job.uid());
    if (found == ledgers_.end()) return 0;
    Uids uids;
    Indexes all;
    for (const auto& [uid, ended] : found->second.ended) {
      if (!ended.well) continue;
      uids.insert(uid);
      if (ended.index) all.insert(*ended.index);
    }
    return indexed(job) ? int64_t(all.size()) : int64_t(uids.size());
  }

  // ---- writes of the status ----

  void check_status(const ClusterState& cluster_state, Actor actor, const Change& change) {
    const Object &before = *change.before, &after = *change.after;
    std::string name = "jobs: " + describe(after) + ": ";
    Ledger& ledger = ledgers_[after.uid()];
    ledger.resized |= indexed(after) && completions(before) != completions(after);
    if (actor != Actor::daemon) return;
    const json::value *was = find(before.json(), "status"), *is = find(after.json(), "status");
    if (over(before) && was && is && *was != *is) return cluster_state.violated(name + "was over, and says something else now");
    if (has_condition(after, "Complete") && has_condition(after, "Failed"))
      return cluster_state.violated(name + "is Complete and Failed");
    std::string wrong = count(cluster_state, before, after, change.revision, ledger);
    if (wrong.empty() && indexed(after)) wrong = wrong_indexes(before, after, ledger);
    if (wrong.empty() && ending(after) && !ending(before)) wrong = wrong_cause(cluster_state, after);
    if (wrong.empty() && over(after) && !over(before)) wrong = wrong_end(after);
    if (!wrong.empty()) cluster_state.violated(name + wrong);
  }

  // A pod that left the list of uncounted pods is counted now, and its finalizer was removed earlier.
  static std::string count(const ClusterState& cluster_state, const Object& before, const Object& after, Revision at,
                           Ledger& ledger) {
    for (bool well : {true, false}) {
      std::string list = well ? "succeeded" : "failed";
      Uids were = uncounted(before, list), are = uncounted(after, list), left = without(were, are);
      int64_t more = status(after, list) - status(before, list);
      for (const std::string& uid : left) {
        if (held(cluster_state, after, uid)) return "counts a pod that is still held";
        if (!ledger.counted.try_emplace(uid, well, at).second) return "counts a pod twice";
      }
      bool by_index = well && indexed(after);
      if (!by_index && more != int64_t(left.size()))
        return "counts " + std::to_string(more) + " more as " + list + ", and names " + std::to_string(left.size());
      for (const std::string& uid : without(are, were)) {
        if (ledger.counted.contains(uid)) return "names a pod that is counted already";
        if (!held(cluster_state, after, uid)) return "names a pod that nobody holds any more";
        auto ended = ledger.ended.find(uid);
        if (well && (ended == ledger.ended.end() || !ended->second.well)) return "names a pod as succeeded that has not";
        if (!well && ended != ledger.ended.end() && ended->second.well && waits_for_the_end(after) &&
            !has_condition(after, "FailureTarget"))
          return "names a pod as failed that has succeeded";
      }
    }
    for (const std::string& uid : uncounted(after, "succeeded"))
      if (uncounted(after, "failed").contains(uid)) return "names a pod as succeeded and failed";
    return "";
  }

  static bool held(const ClusterState& cluster_state, const Object& job, const std::string& uid) {
    for (const ObjectPtr& pod : cluster_state.controlled(kPod, job))
      if (pod->uid() == uid) return holds(*pod);
    return false;
  }

  static std::string wrong_indexes(const Object& before, const Object& after, const Ledger& ledger) {
    Indexes well, badly, were = done(before), are = done(after), failed = given_up(after);
    for (const auto& [uid, ended] : ledger.ended)
      if (ended.index) (ended.well ? well : badly).insert(*ended.index);
    if (status(after, "succeeded") != int64_t(are.size()))
      return "counts " + std::to_string(status(after, "succeeded")) + " as succeeded of " + std::to_string(are.size()) +
             " indexes";
    int64_t all = *completions(after);
    for (int64_t index : are) {
      if (!were.contains(index) && !well.contains(index))
        return "index " + std::to_string(index) + " is done, and no pod of it has succeeded";
      if (index >= all && !ledger.resized) return "index " + std::to_string(index) + " is done, and there is none";
      if (failed.contains(index)) return "index " + std::to_string(index) + " is done, and was given up";
    }
    for (int64_t index : were)
      if (!are.contains(index) && !ledger.resized) return "index " + std::to_string(index) + " is not done any more";
    for (int64_t index : given_up(before))
      if (!failed.contains(index) && !ledger.resized) return "index " + std::to_string(index) + " is not given up any more";
    return "";
  }

  static std::string reason(const Object& job, std::string_view type) { return std::string(condition(job, type, "reason")); }

  static std::string wrong_end(const Object& job) {
    for (const char* list : {"succeeded", "failed"})
      if (!uncounted(job, list).empty()) return "is over, and not all is counted";
    for (const char* count : {"active", "terminating"})
      if (status(job, count) > 0) return std::string("is over, and has pods that are ") + count;
    if (has_condition(job, "Complete") != has_condition(job, "SuccessCriteriaMet")) return "ends otherwise than it was to";
    return "";
  }

  // Whether the job may finish, for some state of it that the daemon may assume.
  static std::string wrong_cause(const ClusterState& cluster_state, const Object& job) {
    std::string wrong = "ends, and is gone";
    for (const ObjectPtr& each : cluster_state.believable(kJob, job.key()))
      if (each->uid() == job.uid() && (wrong = wrong_cause(job, *each)).empty()) break;
    return wrong;
  }
  static std::string wrong_cause(const Object& job, const Object& asked) {
    int64_t well = status(job, "succeeded") + int64_t(uncounted(job, "succeeded").size()),
            badly = status(job, "failed") + int64_t(uncounted(job, "failed").size());
    if (has_condition(job, "SuccessCriteriaMet")) {
      std::string how = reason(job, "SuccessCriteriaMet");
      bool met = how == "SuccessPolicy" ? has(asked, "successPolicy") && well > 0
                 : completions(asked)   ? well >= *completions(asked)
                                        : well > 0;
      return met ? "" : "has met its goal (" + how + ") with " + std::to_string(well) + " succeeded";
    }
    std::string why = reason(job, "FailureTarget");
    bool once = get_string(asked.json(), "spec.template.spec.restartPolicy") == "Never";
    int64_t given = int64_t(given_up(job).size());
    bool fits = why == "BackoffLimitExceeded"       ? !once || badly > spec(asked, "backoffLimit", 6)
                : why == "DeadlineExceeded"         ? has(asked, "activeDeadlineSeconds")
                : why == "PodFailurePolicy"         ? has(asked, "podFailurePolicy")
                : why == "FailedIndexes"            ? given > 0 && given + well >= spec(asked, "completions")
                : why == "MaxFailedIndexesExceeded" ? has(asked, "maxFailedIndexes") && given > spec(asked, "maxFailedIndexes")
                                                    : false;
    return fits ? "" : "fails (" + why + ") with " + std::to_string(well) + " succeeded, " + std::to_string(badly) + " failed";
  }

  // ---- deletion of the job ----

  static void check_removal(const ClusterState& cluster_state, const Object& job) {
    if (!job.owners().empty() || !has(job, "ttlSecondsAfterFinished")) return;  // see ownership.cc
    ObjectPtr ns = cluster_state.find(kNamespace, {"", job.ns()});
    if (!ns || ns->deleting()) return;
    if (!over(job)) return cluster_state.violated("jobs: removed " + describe(job) + ", which is not over");
    for (const json::value& each : get_array(job.json(), "status.conditions")) {
      bool ends = get_string(each, "type") == "Complete" || get_string(each, "type") == "Failed";
      auto at = parse_time(get_string(each, "lastTransitionTime"));
      if (ends && at && *at + std::chrono::seconds(spec(job, "ttlSecondsAfterFinished")) > cluster_state.clock.now())
        cluster_state.violated("jobs: removed " + describe(job) + " before its time");
    }
  }

  // ---- at rest ----

  void check_rest(const ClusterState& cluster_state, const Object& job) {
    std::string wrong = wrong_at_rest(cluster_state, job);
    if (!wrong.empty()) cluster_state.violated("jobs: " + describe(job) + ": " + wrong);
  }

  std::string wrong_at_rest(const ClusterState& cluster_state, const Object& job) {
    int64_t there = 0, good = 0, waiting = 0;
    bool may_end = false;
    for (const ObjectPtr& pod : cluster_state.controlled(kPod, job)) {
      if (!active(*pod)) continue;
      there++;
      good += ready(*pod);
      waiting += phase(*pod, "Pending");
      may_end |= pod->annotation(kOutcome) == "ends" && !get_string(pod->json(), "spec.nodeName").empty();
    }
    struct Count {
      const char* name;
      int64_t value;
    };
    for (const Count& count : {Count{"active", there}, Count{"ready", good}, Count{"terminating", 0}})
      if (status(job, count.name) != count.value)
        return std::string("status.") + count.name + " is " + std::to_string(status(job, count.name)) + ", not " +
               std::to_string(count.value);
    if (std::string wrong = wrong_counts(cluster_state, job); !wrong.empty()) return wrong;
    if (over(job)) {
      if (there > 0) return "is over, and has pods that run";
      if (has(job, "ttlSecondsAfterFinished")) return "is over for long, and still there";
      return "";
    }
    if (ending(job)) return "does not come to its end";
    if (suspended(job))
      return there > 0                         ? "is suspended, and has pods that run"
             : has_condition(job, "Suspended") ? ""
                                               : "does not say that it is suspended";
    if (has_condition(job, "Suspended")) return "says that it is suspended";
    if (has(job, "activeDeadlineSeconds")) return "runs on after its deadline";
    if (may_end) return "has pods that do not end";
    int64_t well = status(job, "succeeded"), wanted = spec(job, "parallelism", 1);
    if (completions(job))
      wanted = std::min(wanted, *completions(job) - well - (indexed(job) ? int64_t(given_up(job).size()) : 0));
    else if (well > 0) wanted = std::min(wanted, there);
    bool hindered = !cluster_state.all(kResourceQuota, job.ns()).empty() && there < wanted;
    if (there != wanted && !hindered) return "has " + std::to_string(there) + " pods, wanted " + std::to_string(wanted);
    bool to_do = completions(job) ? well < *completions(job) : well == 0;
    return to_do || there > 0 ? "" : "has nothing to do, and is not over";
  }

  std::string wrong_counts(const ClusterState& cluster_state, const Object& job) {
    const Ledger& ledger = ledgers_[job.uid()];
    int64_t well = 0, badly = 0;
    for (const auto& [uid, counted] : ledger.counted) (counted.well ? well : badly)++;
    if (!indexed(job) && status(job, "succeeded") != well)
      return "status.succeeded is " + std::to_string(status(job, "succeeded")) + ", not " + std::to_string(well);
    if (status(job, "failed") != badly)
      return "status.failed is " + std::to_string(status(job, "failed")) + ", not " + std::to_string(badly);
    for (const auto& [uid, ended] : ledger.ended) {
      if (ledger.counted.contains(uid) || ledger.excused.contains(uid) || held(cluster_state, job, uid)) continue;
      bool by_index = indexed(job) && ended.well && ended.index && (ledger.resized || done(job).contains(*ended.index));
      if (!by_index && !over(job)) return "a pod that " + std::string(ended.well ? "succeeded" : "failed") + " is not counted";
    }
    return "";
  }

  std::map<std::string, Ledger> ledgers_;  // by the job's uid
};

}  // namespace

bool over(const Object& job) { return has_condition(job, "Complete") || has_condition(job, "Failed"); }

bool waits_for_another(const ClusterState& cluster_state, const Object& pod) {
  ObjectPtr job = job_of(cluster_state, pod);
  if (!job || !holds(pod) || !has(*job, "backoffLimitPerIndex") || !phase(pod, "Failed") || !has_place(*job, pod)) return false;
  auto index = index_of(pod);
  if (over(*job) || done(*job).contains(*index) || given_up(*job).contains(*index)) return false;
  for (const ObjectPtr& other : cluster_state.controlled(kPod, *job))
    if (other->uid() != pod.uid() && index_of(*other) == index && (active(*other) || holds(*other))) return false;
  return true;
}

std::unique_ptr<Rule> jobs_rule() { return std::make_unique<JobsRule>(); }

}  // namespace coracle::simulation

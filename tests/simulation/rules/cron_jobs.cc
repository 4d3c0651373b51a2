// SPDX-License-Identifier: Apache-2.0
// CronJobs: a run is created at a time of its schedule, not earlier, not after its starting deadline, and not again once the
// status has it; with Forbid and Replace not while another one runs. All according to what the daemon could know: Kubernetes
// promises about one run for each time, and a run that was deleted before the status had it may be created again. Runs are only
// deleted for the history limits and for Replace. At rest, the status lists exactly the runs that are not finished, and the
// history has its size. Source: Kubernetes CronJob.
#include <algorithm>
#include <set>

#include "store/schema/schedule.h"
#include "tests/simulation/rules/jobs.h"

namespace coracle::simulation {
namespace {

using std::chrono::seconds;

constexpr std::string_view kScheduledAt = "batch.kubernetes.io/cronjob-scheduled-timestamp";

std::optional<WallTime> last_run(const Object& cron_job) {
  auto at = parse_time(get_string(cron_job.json(), "status.lastScheduleTime"));
  return at ? std::optional(*at) : std::nullopt;
}
std::string_view policy(const Object& cron_job) { return get_string(cron_job.json(), "spec.concurrencyPolicy"); }
int64_t limit(const Object& cron_job, std::string_view how) {
  return how == "Complete" ? get_int(cron_job.json(), "spec.successfulJobsHistoryLimit", 3)
                           : get_int(cron_job.json(), "spec.failedJobsHistoryLimit", 1);
}

class CronJobsRule : public Rule {
 public:
  void after(const ClusterState& cluster_state, Actor actor, const Change& change) override {
    if (*change.kind == kJob) {
      if (change.after && !change.before) note_run(*change.after);
      if (actor != Actor::daemon) return;
      if (!change.before) check_creation(cluster_state, *change.after);
      else if (!change.before->deleting() && (!change.after || change.after->deleting()))
        check_removal(cluster_state, *change.before);
    } else if (*change.kind == kCronJob && change.before && !change.after) {
      runs_.erase(change.before->uid());
    } else if (*change.kind == kCronJob && change.before && change.after && change.before->uid() == change.after->uid()) {
      auto before = last_run(*change.before), after = last_run(*change.after);
      if (before && (!after || *after < *before))
        cluster_state.violated("cronjobs: " + describe(*change.after) + " forgets its last run");
    }
  }

  void at_rest(const ClusterState& cluster_state) override {
    for (const ObjectPtr& cron_job : cluster_state.all(kCronJob)) {
      std::set<std::string> run, told;
      int64_t complete = 0, failed = 0;
      for (const ObjectPtr& job : cluster_state.controlled(kJob, *cron_job)) {
        complete += has_condition(*job, "Complete"), failed += has_condition(*job, "Failed");
        if (!over(*job)) run.insert(job->uid());
      }
      const json::array& active = get_array(cron_job->json(), "status.active");
      for (const json::value& each : active) told.emplace(get_string(each, "uid"));
      std::string name = "cronjobs: " + describe(*cron_job) + ": ";
      if (told.size() != active.size()) return cluster_state.violated(name + "names a run twice");
      if (told != run)
        return cluster_state.violated(name + "names " + std::to_string(told.size()) + " runs as active, and there are " +
                                      std::to_string(run.size()));
      if (complete > limit(*cron_job, "Complete"))
        return cluster_state.violated(name + "keeps " + std::to_string(complete) + " runs that were Complete");
      if (failed > limit(*cron_job, "Failed"))
        return cluster_state.violated(name + "keeps " + std::to_string(failed) + " runs that have Failed");
    }
  }

 private:
  static bool is_run(const Object& job) {
    auto owner = job.controller();
    return owner && owner->kind == kCronJob.kind;
  }
  void note_run(const Object& job) {
    if (is_run(job)) runs_[job.controller()->uid].insert(job.key());
  }

  // ---- creation of a run ----

  void check_creation(const ClusterState& cluster_state, const Object& job) {
    if (!is_run(job)) return;
    std::string why = "for a cron job that the daemon knows is gone";
    for (const ObjectPtr& cron_job : cluster_state.believable_owner(kCronJob, job)) {
      why = against_creation(cluster_state, *cron_job, job);
      if (why.empty()) return;
    }
    cluster_state.violated("cronjobs: made " + job.key().text() + ", " + why);
  }

  std::string against_creation(const ClusterState& cluster_state, const Object& cron_job, const Object& job) const {
    auto at = parse_time(job.annotation(kScheduledAt));
    if (!at) return "which does not say for when";
    auto minutes = std::chrono::floor<std::chrono::minutes>(at->time_since_epoch());
    if (job.name() != cron_job.name() + "-" + std::to_string(minutes.count())) return "which is not named for its time";
    WallTime now = cluster_state.clock.now();
    if (*at > now) return "before its time";
    if (cron_job.deleting()) return "whose cron job is being deleted";
    if (get_bool(cron_job.json(), "spec.suspend")) return "whose cron job is suspended";
    auto created = parse_time(get_string(cron_job.json(), "metadata.creationTimestamp"));
    if (created && *at <= *created) return "for a time before its cron job was";
    auto last = last_run(cron_job);
    if (last && *at <= *last) return "which was made before";
    if (const json::value* deadline = find(cron_job.json(), "spec.startingDeadlineSeconds");
        deadline && *at + seconds(deadline->to_number<int64_t>()) <= now)
      return "after its starting deadline";
    if (!scheduled(cron_job, *at)) return "for a time that is not in the schedule";
    if (policy(cron_job) == "Allow") return "";
    for (const ObjectPtr& other : cluster_state.controlled(kJob, cron_job))
      if (other->uid() != job.uid() && runs_surely(cluster_state, *other)) return "beside " + other->key().text();
    return "";
  }

  static bool scheduled(const Object& cron_job, WallTime at) {
    auto schedule = schema::Schedule::parse(get_string(cron_job.json(), "spec.schedule"));
    std::string_view name = get_string(cron_job.json(), "spec.timeZone");
    auto zone = name.empty() ? Result<schema::TimeZone>(schema::TimeZone::local()) : schema::TimeZone::find(std::string(name));
    return schedule && zone && schedule->next(at - seconds(1), *zone) == at;
  }

  // The daemon knows of this run, and that it is neither finished nor terminating.
  static bool runs_surely(const ClusterState& cluster_state, const Object& job) {
    if (cluster_state.daemon_unaware_of(job)) return false;
    std::vector<ObjectPtr> seen = cluster_state.believable(kJob, job.key());
    return std::all_of(seen.begin(), seen.end(),
                       [&](const ObjectPtr& each) { return each->uid() == job.uid() && !over(*each) && !each->deleting(); });
  }

  // ---- deletion of a run ----

  void check_removal(const ClusterState& cluster_state, const Object& job) {
    ObjectPtr ns = cluster_state.find(kNamespace, {"", job.ns()});
    if (!is_run(job) || !ns || ns->deleting()) return;
    ObjectPtr owner = cluster_state.find(kCronJob, {job.ns(), job.controller()->name});
    if (!owner || owner->uid() != job.controller()->uid || owner->deleting()) return;  // deleted with its cron job
    if (over(job) && find(job.json(), "spec.ttlSecondsAfterFinished")) return;         // see jobs.cc
    for (const ObjectPtr& cron_job : cluster_state.believable_owner(kCronJob, job)) {
      if (maybe_runs(cluster_state, job) && policy(*cron_job) == "Replace") return;
      for (std::string_view how : {"Complete", "Failed"})
        if (has_condition(job, how) && maybe_ended(cluster_state, *cron_job, how) > limit(*cron_job, how)) return;
    }
    cluster_state.violated("cronjobs: removed " + job.key().text() +
                           (over(job) ? ", which the history has space for" : ", which still runs"));
  }

  static bool maybe_runs(const ClusterState& cluster_state, const Object& job) {
    std::vector<ObjectPtr> seen = cluster_state.believable(kJob, job.key());
    return !over(job) ||
           std::any_of(seen.begin(), seen.end(), [&](const ObjectPtr& each) { return each->uid() == job.uid() && !over(*each); });
  }

  // How many runs the daemon may take for ended in this way, and for still existing.
  int64_t maybe_ended(const ClusterState& cluster_state, const Object& cron_job, std::string_view how) const {
    auto runs = runs_.find(cron_job.uid());
    if (runs == runs_.end()) return 0;
    int64_t count = 0;
    for (const Key& key : runs->second) {
      std::vector<ObjectPtr> seen = cluster_state.believable(kJob, key);
      count += std::any_of(seen.begin(), seen.end(), [&](const ObjectPtr& each) {
        return is_run(*each) && each->controller()->uid == cron_job.uid() && has_condition(*each, how);
      });
    }
    return count;
  }

  std::map<std::string, std::set<Key>> runs_;  // by the cron job's uid: all runs so far
};

}  // namespace

std::unique_ptr<Rule> cron_jobs_rule() { return std::make_unique<CronJobsRule>(); }

}  // namespace coracle::simulation

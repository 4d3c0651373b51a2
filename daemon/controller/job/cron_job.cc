// SPDX-License-Identifier: Apache-2.0
// CronJob: creates a Job at scheduled times. Scheduled times are wall time and timers use the steady clock. A sync computes what
// is due from the status, and the time until the next run. When the clock is set, all CronJobs are synced.
//   cron job, its jobs, the clock ──▶ key ──▶ status of its jobs ──▶ due? ──▶ create a job ──▶ status ──▶ history
// A run is started once, because its time is in the status and in its Job's name. Setting the clock back repeats no run, and a
// jump by years starts the last run only. Source: Kubernetes CronJob; reasons of events are Kubernetes'.
#include "daemon/controller/job/cron_job.h"

#include <algorithm>
#include <map>
#include <set>

#include "daemon/controller/controller.h"
#include "daemon/controller/job/job.h"
#include "daemon/controller/workload/pod_control.h"
#include "runtime/base/text.h"

namespace coracle::controller {

DueRun due_run(view::CronJob cron_job, const schema::Schedule& schedule, const schema::TimeZone& zone, WallTime now) {
  DueRun due;
  auto created = parse_time(cron_job.metadata().creation_timestamp()), last = parse_time(cron_job.status().last_schedule_time());
  WallTime earliest = last ? *last : created ? *created : now;
  std::optional<WallTime> latest = schedule.last(earliest, now, zone);
  if (!latest) return due;
  if (cron_job.spec().has_starting_deadline_seconds()) {
    WallTime deadline = now - bounded_seconds(cron_job.spec().starting_deadline_seconds());
    if (*latest <= deadline) {
      due.missed = latest;
      return due;
    }
    earliest = std::max(earliest, deadline);
  }
  due.at = latest;
  int missed = 0;
  auto run = schedule.next(earliest, zone);
  for (; run && *run <= now && missed <= kMissedRunsMax; run = schedule.next(*run, zone)) missed++;
  due.many_missed = missed > kMissedRunsMax;
  return due;
}

std::string run_name(std::string_view cron_job, WallTime scheduled) {
  auto minutes = std::chrono::floor<std::chrono::minutes>(scheduled.time_since_epoch());
  return std::string(cron_job) + "-" + std::to_string(minutes.count());
}

json::value job_of_run(const Object& cron_job, WallTime scheduled, const schema::TimeZone& zone) {
  json::object metadata{{"name", run_name(cron_job.name(), scheduled)}, {"namespace", cron_job.ns()}};
  view::JobTemplateSpec written = view::CronJob(cron_job).spec().job_template();
  if (written.metadata().has_labels()) metadata["labels"] = written.metadata().labels();
  if (written.metadata().has_annotations()) metadata["annotations"] = written.metadata().annotations();
  metadata["ownerReferences"] = json::array{controller_reference(cron_job)};
  json::value job{{"apiVersion", kJob.api_version()}, {"kind", kJob.kind}, {"metadata", std::move(metadata)}};
  if (const json::value* spec = written.spec().pointer()) job.get_object()["spec"] = *spec;
  make_object(job, "metadata.annotations")[kScheduledAt] = zone.format(scheduled);
  return job;
}

std::vector<ObjectPtr> outlived(view::CronJobSpec spec, const std::vector<ObjectPtr>& jobs) {
  std::vector<ObjectPtr> out;
  auto beyond = [&](std::string_view condition, bool limited, int64_t limit) {
    if (!limited) return;
    std::vector<ObjectPtr> all;
    for (const ObjectPtr& job : jobs)
      if (job_condition(*job, condition) && !job->deleting()) all.push_back(job);
    std::sort(all.begin(), all.end(), [](const ObjectPtr& a, const ObjectPtr& b) {
      auto key = [](const Object& job) { return std::pair(view::Job(job).status().start_time(), std::string_view(job.name())); };
      return key(*a) < key(*b);
    });
    if (int64_t(all.size()) > limit) out.insert(out.end(), all.begin(), all.end() - limit);
  };
  beyond("Complete", spec.has_successful_jobs_history_limit(), spec.successful_jobs_history_limit());
  beyond("Failed", spec.has_failed_jobs_history_limit(), spec.failed_jobs_history_limit());
  return out;
}

namespace {

bool lists(const json::array& active, std::string_view uid) {
  return std::any_of(active.begin(), active.end(),
                     [&](const json::value& each) { return view::ObjectReference(each).uid() == uid; });
}

class CronJobController : public Controller {
 public:
  explicit CronJobController(const Context& context)
      : client_(context.client),
        clock_(context.clock),
        cron_jobs_(context.informers.of(kCronJob)),
        jobs_(context.informers.of(kJob)),
        recorder_(context.events, "cronjob-controller"),
        own_jobs_(context.clock),
        own_status_(context.clock) {}

  std::string_view name() const override { return "cronjob"; }

  void subscribe(const Enqueue& enqueue) override {
    index_by_controller(jobs_);
    cron_jobs_.on_change([=, this](const Informer::Change& change) {
      if (!change.after) forget(*change.before);
      enqueue.now(change.any().key());
    });
    jobs_.on_change([=](const Informer::Change& change) {
      for (const ObjectPtr& job : {change.before, change.after}) {
        if (!job) continue;
        if (auto owner = job->controller(); owner && owner->kind == kCronJob.kind) enqueue.now({job->ns(), owner->name});
      }
    });
  }

  Result<Outcome> reconcile(const Key& key) override {
    ObjectPtr cron_job = cron_jobs_.get(key);
    if (!cron_job) return Outcome{};
    if (!own_jobs_.shown(key, jobs_) || !own_status_.shown(key, cron_jobs_)) return Outcome{OwnWrites::kLookAgain};
    std::vector<ObjectPtr> jobs = own_jobs_.without_removed(key, controlled_by(jobs_, *cron_job));
    view::CronJobStatus before = view::CronJob(*cron_job).status();
    json::object status = before.members();
    TRY(look_at_jobs(*cron_job, jobs, status));
    Outcome outcome;
    Result<void> started;
    bool caught_up = last_run(view::CronJobStatus(status)) != last_run(before);  // the decision uses the status written now
    if (!cron_job->deleting() && !caught_up) started = run(*cron_job, status, outcome);
    ObjectPtr written = TRY(update_status(client_, *cron_job, std::move(status)));
    if (written) own_status_.wrote(key, written->revision());
    if (!started) return started.take_error();
    for (const ObjectPtr& job : outlived(view::CronJob(*cron_job).spec(), jobs)) {
      TRY(remove(*cron_job, job->key(), job->uid()));
    }
    return outcome;
  }

 private:
  // Updates the status for the Jobs that it names and for other Jobs of the CronJob.
  Result<void> look_at_jobs(const Object& cron_job, const std::vector<ObjectPtr>& jobs, json::object& status) {
    json::array active = view::CronJobStatus(status).active().raw(), still;
    std::set<std::string, std::less<>> known;
    for (view::ObjectReference each : view::CronJobStatus(status).active()) known.emplace(each.uid());
    std::map<std::string_view, const Object*> by_uid;
    for (const ObjectPtr& job : jobs) by_uid.emplace(job->uid(), job.get());
    for (const ObjectPtr& job : jobs) {
      bool listed = known.contains(job->uid()), ended = job_finished(*job);
      bool ours = !listed && started_by_us(cron_job, *job);
      if (ours) note_start(*job, active, status);
      else if (!listed && !ended)
        recorder_.warning(cron_job, "UnexpectedJob", "Saw a job that the controller did not create or forgot: " + job->name());
      if (listed && ended) {
        std::string how = job_condition(*job, "Complete") ? "Complete" : "Failed";
        recorder_.normal(cron_job, "SawCompletedJob", "Saw completed job: " + job->name() + ", condition: " + how);
      }
      if (job_condition(*job, "Complete")) note_success(*job, status);
    }
    for (const json::value& each : active) {
      std::string uid(view::ObjectReference(each).uid()), name(view::ObjectReference(each).name());
      if (auto found = by_uid.find(uid); found != by_uid.end()) {
        if (!job_finished(*found->second)) still.push_back(each);
        continue;
      }
      auto live = client_.get(kJob, {cron_job.ns(), name});
      if (!live && live.error().code() != Code::not_found) return live.take_error();
      if (live && (*live)->uid() == uid && !(*live)->deleting()) still.push_back(each);
      else if (!live) recorder_.normal(cron_job, "MissingJob", "Active job went missing: " + name);
    }
    set_active(status, std::move(still));
    return {};
  }

  // Whether the Job is for a time that the status lacks: the daemon was stopped in between.
  static bool started_by_us(const Object& cron_job, const Object& job) {
    auto at = parse_time(job.annotation(kScheduledAt)), last = parse_time(view::CronJob(cron_job).status().last_schedule_time());
    return at && (!last || *at > *last) && job.name() == run_name(cron_job.name(), *at);
  }

  static void note_start(const Object& job, json::array& active, json::object& status) {
    auto at = parse_time(job.annotation(kScheduledAt));
    auto last = last_run(view::CronJobStatus(status));
    if (at && (!last || *last < *at)) status["lastScheduleTime"] = format_time(*at);
    if (!job_finished(job)) active.push_back(reference_to(job));
  }

  static std::optional<WallTime> last_run(view::CronJobStatus status) {
    auto at = parse_time(status.last_schedule_time());
    return at ? std::optional(*at) : std::nullopt;
  }

  static json::value reference_to(const Object& job) {
    return {{"apiVersion", kJob.api_version()},
            {"kind", kJob.kind},
            {"namespace", job.ns()},
            {"name", job.name()},
            {"uid", job.uid()},
            {"resourceVersion", std::to_string(job.revision())}};
  }

  static void note_success(const Object& job, json::object& status) {
    auto ended = parse_time(view::Job(job).status().completion_time());
    auto known = parse_time(view::CronJobStatus(status).last_successful_time());
    if (ended && (!known || *known < *ended)) status["lastSuccessfulTime"] = view::Job(job).status().completion_time();
  }

  static void set_active(json::object& status, json::array active) {
    if (active.empty()) status.erase("active");
    else status["active"] = std::move(active);
  }

  // Starts the run that is due, if there is one, and sets the time of the next.
  Result<void> run(const Object& cron_job, json::object& status, Outcome& outcome) {
    view::CronJob view(cron_job);
    schema::TimeZone zone = schema::TimeZone::local();
    if (view.spec().has_time_zone()) {
      std::string name(view.spec().time_zone());
      auto found = schema::TimeZone::find(name);
      if (!found) {
        recorder_.warning(cron_job, "UnknownTimeZone", "invalid timeZone: " + quoted(name) + ": " + found.error().text());
        return {};
      }
      zone = *found;
    }
    if (view.spec().suspend()) return {};
    std::string text(view.spec().schedule());
    auto schedule = schema::Schedule::parse(text);
    if (!schedule) {
      recorder_.warning(cron_job, "UnparseableSchedule",
                        "unparseable schedule: " + quoted(text) + " : " + schedule.error().text());
      return {};
    }
    WallTime now = clock_.now();
    if (last_was_wrong(view, now)) {
      status["lastScheduleTime"] = format_time(now);
      if (auto next = schedule->next(now, zone)) outcome.again = *next - now;
      return {};
    }
    if (auto next = schedule->next(after_last(view, now), zone)) outcome.again = *next - now;
    DueRun due = due_run(view, *schedule, zone, now);
    if (due.many_missed && tell_once(cron_job, *due.at, "TooManyMissedTimes"))
      recorder_.warning(cron_job, "TooManyMissedTimes",
                        "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew");
    if (due.missed && tell_once(cron_job, *due.missed, "MissSchedule"))
      recorder_.warning(cron_job, "MissSchedule", "Missed scheduled time to start a job: " + zone.format(*due.missed));
    if (!due.at) return {};

    json::array active = view::CronJobStatus(status).active().raw();
    if (!active.empty() && view.spec().concurrency_policy() == "Forbid") {
      if (tell_once(cron_job, *due.at, "JobAlreadyActive"))
        recorder_.normal(cron_job, "JobAlreadyActive",
                         "Not starting job because prior execution is running and concurrency policy is Forbid");
      return {};  // the end of that Job enqueues this CronJob again
    }
    if (view.spec().concurrency_policy() == "Replace") {
      for (const json::value& each : active) {
        view::ObjectReference job(each);
        TRY(remove(cron_job, {cron_job.ns(), std::string(job.name())}, std::string(job.uid())));
      }
      active.clear();
      set_active(status, {});
    }
    return start(cron_job, *due.at, zone, std::move(active), status);
  }

  // Whether lastScheduleTime is in the future although the present time is plausible (after the CronJob's creation): then it was
  // recorded with a wrong clock and is ignored. If the present time is implausible, the clock is wrong now, and lastScheduleTime
  // is used again after it is set.
  static bool last_was_wrong(view::CronJob cron_job, WallTime now) {
    auto created = parse_time(cron_job.metadata().creation_timestamp()),
         last = parse_time(cron_job.status().last_schedule_time());
    return last && *last > now + kBelievedAhead && created && *created <= now;
  }

  // The time after which the next run is searched: setting the clock back repeats no run.
  static WallTime after_last(view::CronJob cron_job, WallTime now) {
    auto last = parse_time(cron_job.status().last_schedule_time());
    return last ? std::max(*last, now) : now;
  }

  Result<void> start(const Object& cron_job, WallTime at, const schema::TimeZone& zone, json::array active,
                     json::object& status) {
    auto created = client_.create(kJob, job_of_run(cron_job, at, zone));
    if (created) {
      own_jobs_.wrote(cron_job.key(), (*created)->revision());
      recorder_.normal(cron_job, "SuccessfulCreate", "Created job " + (*created)->name());
    } else if (created.error().code() == Code::already_exists) {
      created = client_.get(kJob, {cron_job.ns(), run_name(cron_job.name(), at)});
      if (!created) return created.take_error();
      auto owner = (*created)->controller();
      if (!owner || owner->uid != cron_job.uid()) {
        std::string problem = "job " + (*created)->name() + " exists and is not this cron job's";
        recorder_.warning(cron_job, "FailedCreate", "Error creating job: " + problem);
        return Error(Code::already_exists, std::move(problem));
      }
    } else {
      if (namespace_terminating(created.error())) return {};
      recorder_.warning(cron_job, "FailedCreate", "Error creating job: " + created.error().text());
      return created.take_error().wrap("create job");
    }
    const Object& job = **created;
    if (!job_finished(job) && !lists(active, job.uid())) active.push_back(reference_to(job));
    set_active(status, std::move(active));
    status["lastScheduleTime"] = format_time(at);
    return {};
  }

  Result<void> remove(const Object& cron_job, const Key& job, const std::string& uid) {
    auto removed = client_.remove(kJob, job, {.uid = uid, .propagation = "Background"});
    bool gone = !removed && (removed.error().code() == Code::not_found || removed.error().code() == Code::conflict);
    if (!removed && !gone) {
      recorder_.warning(cron_job, "FailedDelete", "Deleted job: " + removed.error().text());
      return removed.take_error().wrap("remove job " + job.name);
    }
    own_jobs_.removed(cron_job.key(), uid);
    if (!gone) recorder_.normal(cron_job, "SuccessfulDelete", "Deleted job " + job.name);
    return {};
  }

  // Returns true once per run and reason, because every change of a Job enqueues its CronJob.
  bool tell_once(const Object& cron_job, WallTime run, std::string_view reason) {
    return told_.with([&](auto& told) {
      WallTime& last = told[{cron_job.uid(), std::string(reason)}];
      return std::exchange(last, run) != run;
    });
  }

  void forget(const Object& cron_job) {
    own_jobs_.forget(cron_job.key());
    own_status_.forget(cron_job.key());
    told_.with([&](auto& told) { std::erase_if(told, [&](const auto& each) { return each.first.first == cron_job.uid(); }); });
  }

  Client& client_;
  const Clock& clock_;
  Informer& cron_jobs_;
  Informer& jobs_;
  EventRecorder recorder_;
  OwnWrites own_jobs_, own_status_;
  Guarded<std::map<std::pair<std::string, std::string>, WallTime>> told_;  // by uid and reason: the run that was reported
};

}  // namespace

std::unique_ptr<Controller> make_cron_job_controller(const Context& context) {
  return std::make_unique<CronJobController>(context);
}

}  // namespace coracle::controller

// SPDX-License-Identifier: Apache-2.0
// Job: runs pods until enough of them have succeeded or too many have failed.
//   job or pod changes ──▶ key of the job ──▶ claim pods ──▶ decide ──▶ create or delete pods ──▶ status ──▶ finalizers ──▶
//   status keys: {namespace, name} a job · {"pod/<namespace>", name} a pod with the tracking finalizer but without a job of this
//   controller
// job.h makes the plan; this file applies it. A sync waits until the caches show the previous sync's writes. Source: Kubernetes
// Jobs; reasons of events and conditions are Kubernetes'.
#include "daemon/controller/job/job.h"

#include <algorithm>

#include "daemon/controller/controller.h"
#include "daemon/controller/shared/elapsed.h"
#include "daemon/controller/workload/pod_control.h"

namespace coracle::controller {
namespace {

constexpr std::string_view kPodKeys = "pod/";

class JobController : public Controller {
 public:
  explicit JobController(const Context& context)
      : client_(context.client),
        clock_(context.clock),
        jobs_(context.informers.of(kJob)),
        pods_(context.informers.of(kPod)),
        recorder_(context.events, "job-controller"),
        own_pods_(context.clock),
        own_status_(context.clock),
        released_(context.clock),
        elapsed_(context.clock),
        control_(context.client, recorder_, own_pods_) {}

  std::string_view name() const override { return "job"; }

  void subscribe(const Enqueue& enqueue) override {
    enqueue_ = enqueue;
    index_by_controller(pods_);
    follow(jobs_, selectors_);
    jobs_.on_change([=, this](const Informer::Change& change) {
      if (!change.after) {
        forget(*change.before);
        for (const ObjectPtr& pod : controlled_by(pods_, *change.before)) name_pod(*pod);
      }
      enqueue.now(change.any().key());
    });
    pods_.on_change([=, this](const Informer::Change& change) {
      enqueue_owners(change, kJob, selectors_, enqueue);
      if (change.after && has_finalizer(*change.after, kJobTracking) && !job_of(*change.after)) name_pod(*change.after);
    });
  }

  Result<Outcome> reconcile(const Key& key) override {
    if (key.ns.starts_with(kPodKeys)) {
      TRY(release_stray({key.ns.substr(kPodKeys.size()), key.name}));
      return Outcome{};
    }
    ObjectPtr job = jobs_.get(key);
    if (!job) selectors_.forget(key);
    if (!job || job_managed_elsewhere(*job)) return Outcome{};
    if (!own_pods_.shown(key, pods_) || !own_status_.shown(key, jobs_)) return Outcome{OwnWrites::kLookAgain};
    TRY(look_at_doubtful(key));
    if (job_finished(*job)) {
      forget(*job);
      for (const ObjectPtr& pod : controlled_by(pods_, *job))
        if (has_finalizer(*pod, kJobTracking)) name_pod(*pod);
      return Outcome{};
    }
    return sync(*job);
  }

 private:
  Result<Outcome> sync(const Object& job) {
    std::vector<ObjectPtr> pods = TRY(claim(client_, pods_, job, selectors_.of(job).get(), false, {}, kJobTracking));
    ObservedJob observed = observe_job(job, pods, still_active(job, pods), still_held(job, pods));
    JobBackOff back_off = back_off_of(observed);
    JobDecision decision = decide_job(
        observed, back_off, [&](const std::string& what, WallTime moment) { return elapsed_.since(job.uid(), what, moment); });
    JobPods counts = counted(observed);
    Result<void> managed = manage(observed, decision, counts);
    TRY(track(observed, decision, counts, back_off));
    if (!managed) return managed.take_error();
    return Outcome{decision.again};
  }

  std::vector<ObjectPtr> still_active(const Object& job, const std::vector<ObjectPtr>& pods) {
    std::vector<ObjectPtr> active;
    for (const ObjectPtr& pod : pods)
      if (pod_active(*pod)) active.push_back(pod);
    return own_pods_.without_removed(job.key(), std::move(active));
  }

  // Pods with the finalizer. A pod whose finalizer was removed is counted already and is left out, even if the cache is late.
  std::set<std::string> still_held(const Object& job, const std::vector<ObjectPtr>& pods) {
    std::vector<ObjectPtr> with;
    for (const ObjectPtr& pod : pods)
      if (has_finalizer(*pod, kJobTracking)) with.push_back(pod);
    std::set<std::string> held;
    for (const ObjectPtr& pod : released_.without_removed(job.key(), std::move(with))) held.insert(pod->uid());
    return held;
  }

  static JobPods counted(const ObservedJob& observed) {
    JobPods counts{int64_t(observed.active.size()), 0, int64_t(observed.terminating.size())};
    for (const ObjectPtr& pod : observed.active) counts.ready += is_ready(view::Pod(*pod));
    return counts;
  }

  // After a restart of the daemon there is no state: then all visible failures count, not only new ones.
  JobBackOff back_off_of(const ObservedJob& observed) {
    auto known = back_offs_.with([&](auto& all) {
      auto found = all.find(observed.object.uid());
      return found == all.end() ? std::optional<JobBackOff>() : found->second;
    });
    if (known) return back_off_after(*known, observed.new_succeeded, observed.new_failed);
    std::vector<ObjectPtr> succeeded, failed;
    for (const ObjectPtr& pod : observed.pods) {
      if (view::Pod(*pod).status().phase() == "Succeeded") succeeded.push_back(pod);
      if (observed.failed_pod(*pod)) failed.push_back(pod);
    }
    return back_off_after({}, succeeded, failed);
  }

  // `counts` reflects what was done, also if an error occurs.
  Result<void> manage(const ObservedJob& observed, const JobDecision& decision, JobPods& counts) {
    Failure failure;
    Result<void> first;
    for (const ObjectPtr& pod : decision.remove) {
      auto removed = remove_pod(observed.object, *pod, decision.remove_uncounted, failure);
      if (!removed) {
        if (first) first = removed.take_error();
        continue;
      }
      counts.active--;
      counts.terminating++;
      counts.ready -= is_ready(view::Pod(*pod));
    }
    for (std::optional<int64_t> index : decision.create) {
      if (!first) break;  // stops at the first failure, because the others would fail for the same reason
      auto created = control_.create(observed.object, job_pod(observed, index), failure);
      if (!created) first = created.take_error();
      else if (*created) counts.active++;
    }
    return first;
  }

  Result<void> remove_pod(const Object& job, const Object& pod, bool uncounted, Failure& failure) {
    if (uncounted) {
      TRY(release(job.key(), pod));
    }
    return control_.remove(job, pod, failure);
  }

  Result<void> track(const ObservedJob& observed, const JobDecision& decision, const JobPods& counts,
                     const JobBackOff& back_off) {
    const Object& job = observed.object;
    JobTracking tracking = track_job(observed, decision, counts, clock_.now());
    ObjectPtr written = TRY(write(job, tracking.status));
    back_offs_.with([&](auto& all) { all[job.uid()] = back_off; });
    if (tracking.suspended == true) recorder_.normal(job, "Suspended", "Job suspended");
    if (tracking.suspended == false) recorder_.normal(job, "Resumed", "Job resumed");

    std::set<std::string> held = observed.held;
    Result<void> first;
    for (const ObjectPtr& pod : tracking.release) {
      auto released = release(job.key(), *pod);
      if (released) held.erase(pod->uid());
      else if (first) first = released.take_error();
    }
    const Object& now = written ? *written : job;
    json::object status = view::Job(now).status().members();
    bool changed = settle_counts(status, held);
    bool concluded = tracking.last_word && first && conclude_job(status, *tracking.last_word, clock_.now());
    int64_t succeeded = view::JobStatus(status).succeeded();
    if (changed || concluded) {
      TRY(write(now, std::move(status)));
    }
    if (concluded) tell_end(job, *tracking.last_word, succeeded);
    return first;
  }

  Result<ObjectPtr> write(const Object& job, json::object status) {
    ObjectPtr written = TRY(update_status(client_, job, std::move(status)));
    if (written) own_status_.wrote(job.key(), written->revision());
    return written;
  }

  // Removes only the finalizer, by its index with a test. Succeeds if the pod does not exist.
  Result<void> release(const std::optional<Key>& job, const Object& pod) {
    const json::array& finalizers = view::Pod(pod).metadata().finalizers().raw();
    auto found = std::find(finalizers.begin(), finalizers.end(), json::value(kJobTracking));
    if (found == finalizers.end()) return {};
    std::string place = "/metadata/finalizers/" + std::to_string(found - finalizers.begin());
    json::array patch{{{"op", "test"}, {"path", "/metadata/uid"}, {"value", pod.uid()}},
                      {{"op", "test"}, {"path", place}, {"value", kJobTracking}},
                      {{"op", "remove"}, {"path", place}}};
    // A pod without a job may be adopted at this moment, so its resourceVersion is tested.
    json::object unchanged{{"op", "test"}, {"path", "/metadata/resourceVersion"}, {"value", std::to_string(pod.revision())}};
    if (!job) patch.insert(patch.begin(), json::value(std::move(unchanged)));
    auto done = client_.patch(kPod, pod.key(), PatchType::json, patch);
    if (!done && done.error().code() != Code::not_found) {
      if (job) doubtful_.with([&](auto& all) { all[*job].emplace(pod.key(), pod.uid()); });
      return done.take_error().wrap("let go of pod " + pod.name());
    }
    if (!job) return {};
    released_.removed(*job, pod.uid());
    if (done) own_pods_.wrote(*job, (*done)->revision());
    return {};
  }

  // If the removal of a finalizer failed, it may have succeeded anyway, with a lost response. A pod without it must not be
  // counted again, so its state is read from the store. Errors: the Client's.
  Result<void> look_at_doubtful(const Key& job) {
    auto pods = doubtful_.with([&](auto& all) {
      auto found = all.find(job);
      return found == all.end() ? std::map<Key, std::string>() : found->second;
    });
    for (const auto& [key, uid] : pods) {
      auto live = client_.get(kPod, key);
      if (!live && live.error().code() != Code::not_found) return live.take_error();
      bool stands = live && (*live)->uid() == uid && has_finalizer(**live, kJobTracking);
      if (!stands) released_.removed(job, uid);
    }
    if (!pods.empty()) doubtful_.with([&](auto& all) { all.erase(job); });
    return {};
  }

  void tell_end(const Object& job, const Condition& end, int64_t succeeded) {
    if (end.type == "Failed") return recorder_.warning(job, end.reason, end.message);
    view::JobSpec spec = view::Job(job).spec();
    if (spec.has_completions() && succeeded > spec.completions())
      recorder_.warning(job, "TooManySucceededPods", "Too many succeeded pods running after completion count reached");
    recorder_.normal(job, "Completed", "Job completed");
  }

  // ---- pods without a job ----

  // The Job that handles a pod's finalizer, according to the cache.
  ObjectPtr job_of(const Object& pod) const {
    auto owner = pod.controller();
    if (!owner || owner->kind != kJob.kind) return nullptr;
    ObjectPtr job = jobs_.get({pod.ns(), owner->name});
    return job && job->uid() == owner->uid && !job_finished(*job) ? job : nullptr;
  }

  void name_pod(const Object& pod) { enqueue_.now({std::string(kPodKeys) + pod.ns(), pod.name()}); }

  Result<void> release_stray(const Key& key) {
    ObjectPtr pod = pods_.get(key);
    if (!pod || !has_finalizer(*pod, kJobTracking)) return {};
    if (auto owner = pod->controller(); owner && owner->kind == kJob.kind) {
      auto live = client_.get(kJob, {pod->ns(), owner->name});
      if (!live && live.error().code() != Code::not_found) return live.take_error();
      bool looked_after = live && (*live)->uid() == owner->uid && (!job_finished(**live) || job_managed_elsewhere(**live));
      if (looked_after) return {};
    }
    return release(std::nullopt, *pod);
  }

  void forget(const Object& job) {
    own_pods_.forget(job.key());
    own_status_.forget(job.key());
    released_.forget(job.key());
    doubtful_.with([&](auto& all) { all.erase(job.key()); });
    elapsed_.forget(job.uid());
    back_offs_.with([&](auto& all) { all.erase(job.uid()); });
  }

  Client& client_;
  const Clock& clock_;
  Informer& jobs_;
  Informer& pods_;
  EventRecorder recorder_;
  OwnWrites own_pods_, own_status_, released_;
  Guarded<std::map<Key, std::map<Key, std::string>>> doubtful_;  // by job: pods, with their uids, for look_at_doubtful()
  Elapsed elapsed_;
  Guarded<std::map<std::string, JobBackOff>> back_offs_;  // by the Job's uid
  PodControl control_;
  SelectorIndex selectors_{selector_in_spec};
  Enqueue enqueue_;
};

}  // namespace

std::unique_ptr<Controller> make_job_controller(const Context& context) { return std::make_unique<JobController>(context); }

}  // namespace coracle::controller

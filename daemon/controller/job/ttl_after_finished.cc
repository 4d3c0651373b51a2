// SPDX-License-Identifier: Apache-2.0
// TTL after finished: deletes a finished Job, with its pods, after spec.ttlSecondsAfterFinished. Source: Kubernetes "Automatic
// Cleanup for Finished Jobs".
#include "daemon/controller/controller.h"
#include "daemon/controller/job/job.h"
#include "daemon/controller/shared/elapsed.h"

namespace coracle::controller {
namespace {

bool waits(const Object& job) {
  return view::Job(job).spec().has_ttl_seconds_after_finished() && !job.deleting() && job_finished(job);
}

std::optional<WallTime> finished_at(const Object& job) {
  for (view::JobCondition condition : view::Job(job).status().conditions()) {
    bool ends = (condition.type() == "Complete" || condition.type() == "Failed") && condition.status() == "True";
    if (!ends) continue;
    if (auto at = parse_time(condition.last_transition_time())) return *at;
  }
  return std::nullopt;
}

class TtlAfterFinished : public Controller {
 public:
  explicit TtlAfterFinished(const Context& context)
      : client_(context.client), jobs_(context.informers.of(kJob)), elapsed_(context.clock) {}

  std::string_view name() const override { return "ttlafterfinished"; }

  void subscribe(const Enqueue& enqueue) override {
    jobs_.on_change([=, this](const Informer::Change& change) {
      if (!change.after) elapsed_.forget(change.before->uid());
      else if (waits(*change.after)) enqueue.now(change.after->key());
    });
  }

  Result<Outcome> reconcile(const Key& key) override {
    ObjectPtr job = jobs_.get(key);
    if (!job || !waits(*job)) return Outcome{};
    auto finished = finished_at(*job);
    if (!finished) return Outcome{};
    std::chrono::seconds stays(view::Job(*job).spec().ttl_seconds_after_finished());
    std::chrono::nanoseconds left = stays - elapsed_.since(job->uid(), "end", *finished);
    if (left.count() > 0) return Outcome{left};
    // With the resourceVersion, because the TTL may have been increased at this moment.
    auto removed = client_.remove(kJob, key, {.uid = job->uid(), .revision = job->revision(), .propagation = "Foreground"});
    if (!removed && removed.error().code() != Code::not_found) return removed.take_error().wrap("remove finished job");
    return Outcome{};
  }

 private:
  Client& client_;
  Informer& jobs_;
  Elapsed elapsed_;
};

}  // namespace

std::unique_ptr<Controller> make_ttl_after_finished(const Context& context) {
  return std::make_unique<TtlAfterFinished>(context);
}

}  // namespace coracle::controller

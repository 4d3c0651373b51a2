// SPDX-License-Identifier: Apache-2.0
// Deployment: applies the plan of deployment.h and records events.
//   deployment, its sets, the pods of Recreate ──▶ key ──▶ claim sets ──▶ plan ──▶ steps ──▶ status and revision
#include "daemon/controller/workload/deployment.h"

#include <algorithm>

#include "daemon/controller/controller.h"
#include "daemon/controller/shared/elapsed.h"
#include "daemon/controller/workload/pod_control.h"

namespace coracle::controller {
namespace {

class DeploymentController : public Controller {
 public:
  explicit DeploymentController(const Context& context)
      : client_(context.client),
        clock_(context.clock),
        deployments_(context.informers.of(kDeployment)),
        sets_(context.informers.of(kReplicaSet)),
        pods_(context.informers.of(kPod)),
        recorder_(context.events, "deployment-controller"),
        elapsed_(context.clock),
        own_(context.clock) {}

  std::string_view name() const override { return "deployment"; }

  void subscribe(const Enqueue& enqueue) override {
    index_by_controller(sets_);
    index_by_controller(pods_);
    follow(deployments_, selectors_);
    deployments_.on_change([=, this](const Informer::Change& change) {
      if (!change.after) own_.forget(change.before->key()), elapsed_.forget(change.before->uid());
      enqueue.now(change.any().key());
    });
    sets_.on_change([=, this](const Informer::Change& change) { enqueue_owners(change, kDeployment, selectors_, enqueue); });
    pods_.on_change([=, this](const Informer::Change& change) {  // Recreate waits for the last old pod
      bool ended = !change.after || (change.before && is_terminal(view::Pod(*change.after)));
      if (ended) name_grandparent(change.any(), enqueue);
    });
  }

  Result<Outcome> reconcile(const Key& key) override {
    ObjectPtr deployment = deployments_.get(key);
    if (!deployment) return selectors_.forget(key), Outcome{};
    if (!own_.shown(key, sets_)) return Outcome{OwnWrites::kLookAgain};
    ObservedDeployment observed{deployment, {}, false};
    observed.since = [&](WallTime moment) { return elapsed_.since(deployment->uid(), "progress", moment); };
    observed.sets = TRY(claim(client_, sets_, *deployment, selectors_.of(*deployment).get(), false));
    observed.old_pods_run = old_pods_run(observed);
    DeploymentPlan plan = plan_deployment(observed, clock_.now());
    for (const DeploymentStep& step : plan.steps) {
      TRY(apply(*deployment, step));
    }
    json::object revision;  // in the same write: the object may have megabytes
    if (!plan.revision.empty()) revision[kRevisionAnnotation] = plan.revision;
    TRY(write_status(client_, *deployment, std::move(plan.status), revision));
    return Outcome{plan.again};
  }

 private:
  void name_grandparent(const Object& pod, const Enqueue& enqueue) {
    auto owner = pod.controller();
    if (!owner || owner->kind != kReplicaSet.kind) return;
    ObjectPtr set = sets_.get({pod.ns(), owner->name});
    auto deployment = set ? set->controller() : std::nullopt;
    if (deployment && deployment->kind == kDeployment.kind) enqueue.now({pod.ns(), deployment->name});
  }

  bool old_pods_run(const ObservedDeployment& observed) const {
    view::DeploymentSpec spec = view::Deployment(*observed.deployment).spec();
    if (spec.strategy().type() != "Recreate") return false;
    for (const ObjectPtr& set : observed.sets) {
      if (same_template(view::ReplicaSet(*set).spec().template_().raw(), spec.template_().raw())) continue;
      for (const ObjectPtr& pod : controlled_by(pods_, *set))
        if (!is_terminal(view::Pod(*pod))) return true;
    }
    return false;
  }

  Result<void> apply(const Object& deployment, const DeploymentStep& step) {
    switch (step.what) {
      case DeploymentStep::What::create: return create(deployment, step);
      case DeploymentStep::What::update: return update(deployment, step);
      case DeploymentStep::What::remove: return remove(*step.set);
    }
    return {};
  }

  Result<void> create(const Object& deployment, const DeploymentStep& step) {
    auto created = client_.create(kReplicaSet, step.body);
    if (created) {
      own_.wrote(deployment.key(), (*created)->revision());
      tell_scaling(deployment, (*created)->name(), step);
      return {};
    }
    if (created.error().code() == Code::already_exists) return resolve_taken_name(deployment, step);
    std::string message = "Failed to create new replica set \"" + std::string(view::ReplicaSet(step.body).metadata().name()) +
                          "\": " + created.error().text();
    recorder_.warning(deployment, "ReplicaSetCreateError", message);
    if (view::Deployment(deployment).spec().has_progress_deadline_seconds()) {
      TRY(write_status(client_, deployment, status_after_refusal(deployment, message, clock_.now())));
    }
    return created.take_error().wrap("create replica set");
  }

  // Either the set is controlled by this Deployment and the cache was old, or another template has the same hash: then the
  // collision count is increased, so that the next name differs.
  Result<void> resolve_taken_name(const Object& deployment, const DeploymentStep& step) {
    Key key{deployment.ns(), std::string(view::ReplicaSet(step.body).metadata().name())};
    ObjectPtr there = TRY(client_.get(kReplicaSet, key));
    auto owner = there->controller();
    bool ours = owner && owner->uid == deployment.uid();
    if (ours &&
        same_template(view::ReplicaSet(*there).spec().template_().raw(), view::Deployment(deployment).spec().template_().raw())) {
      own_.wrote(deployment.key(), there->revision());
      return {};
    }
    TRY(write_status(client_, deployment, status_after_collision(deployment)));
    return Error(Code::conflict, "replica set " + key.name + " is of another template");  // the retry uses another name
  }

  Result<void> update(const Object& deployment, const DeploymentStep& step) {
    ObjectPtr updated = TRY(client_.update(kReplicaSet, step.body).wrap("update replica set " + step.set->name()));
    own_.wrote(deployment.key(), updated->revision());
    tell_scaling(deployment, step.set->name(), step);
    return {};
  }

  Result<void> remove(const Object& set) {
    auto removed = client_.remove(kReplicaSet, set.key(), {.uid = set.uid()});
    if (!removed && removed.error().code() != Code::not_found) return removed.take_error().wrap("remove old replica set");
    return {};
  }

  void tell_scaling(const Object& deployment, const std::string& set, const DeploymentStep& step) {
    if (step.from == step.to) return;
    recorder_.normal(deployment, "ScalingReplicaSet",
                     std::string(step.from < step.to ? "Scaled up" : "Scaled down") + " replica set " + set + " from " +
                         std::to_string(step.from) + " to " + std::to_string(step.to));
  }

  Client& client_;
  const Clock& clock_;
  Informer& deployments_;
  Informer& sets_;
  Informer& pods_;
  EventRecorder recorder_;
  Elapsed elapsed_;
  OwnWrites own_;
  SelectorIndex selectors_{selector_in_spec};
};

}  // namespace

std::unique_ptr<Controller> make_deployment_controller(const Context& context) {
  return std::make_unique<DeploymentController>(context);
}

}  // namespace coracle::controller

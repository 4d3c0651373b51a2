// SPDX-License-Identifier: Apache-2.0
// StatefulSet: applies the plan of stateful_set.h and records events.
//   set, pods, claims, revisions ──▶ key ──▶ claim pods ──▶ history ──▶ plan ──▶ steps ──▶ status ──▶ delete old revisions
// Pods have fixed names, so none is created twice. A pod whose deletion the cache does not show yet counts as terminating
// (OwnWrites). Source: Kubernetes StatefulSet; reasons and messages of the events are Kubernetes'.
#include "daemon/controller/workload/stateful_set.h"

#include <algorithm>

#include "daemon/controller/controller.h"
#include "daemon/controller/workload/failed_pods.h"
#include "daemon/controller/workload/history.h"
#include "daemon/controller/workload/pod_control.h"
#include "daemon/controller/workload/set_watch.h"
#include "runtime/base/text.h"

namespace coracle::controller {
namespace {

constexpr std::string_view kControllerRevisionHashLabel = "controller.kubernetes.io/hash";
constexpr std::chrono::seconds kStatefulSetBackOffMax{60};  // longest delay before a failed pod is replaced

class StatefulSetController : public Controller {
 public:
  explicit StatefulSetController(const Context& context)
      : client_(context.client),
        clock_(context.clock),
        sets_(context.informers.of(kStatefulSet)),
        pods_(context.informers.of(kPod)),
        claims_(context.informers.of(kPersistentVolumeClaim)),
        revisions_(context.informers.of(kControllerRevision)),
        recorder_(context.events, "statefulset-controller"),
        own_(context.clock),
        failed_(context.clock, kStatefulSetBackOffMax) {}

  std::string_view name() const override { return "statefulset"; }

  void subscribe(const Enqueue& enqueue) override {
    SetWatch{kStatefulSet, sets_, pods_, revisions_, own_, failed_, selectors_}.subscribe(enqueue);
    pods_.on_change([=, this](const Informer::Change& change) {
      if (!change.after)
        enqueue_sets_with_name(*change.before, enqueue,
                               [](const Object& set, std::string_view pod) { return ordinal_of(set, pod).has_value(); });
    });
    claims_.on_change([=, this](const Informer::Change& change) {  // a deleted claim may be needed, or its deletion was awaited
      if (!change.after) enqueue_sets_with_name(*change.before, enqueue, may_be_claim_of);
    });
  }

  Result<Outcome> reconcile(const Key& key) override {
    ObjectPtr set = sets_.get(key);
    if (!set) return selectors_.forget(key), Outcome{};
    if (!own_.shown(key, pods_)) return Outcome{OwnWrites::kLookAgain};
    auto selector = selectors_.of(*set);
    std::vector<ObjectPtr> pods = TRY(claim(client_, pods_, *set, selector.get(), false,
                                            [&](const Object& pod) { return ordinal_of(*set, pod.name()).has_value(); }));
    if (set->deleting()) {
      TRY(write_status(client_, *set, ending_stateful_set_status(*set, pods, clock_.now())));
      return Outcome{};
    }
    History history = TRY(keep_history(client_, revisions_, *set, selector.get(), kControllerRevisionHashLabel));
    ObservedStatefulSet observed = observe(set, history, std::move(pods));
    StatefulSetPlan plan = plan_stateful_set(observed, clock_.now());
    Result<void> done = apply(*set, plan.steps);
    Result<void> written = write_status(client_, *set, std::move(plan.status));
    // Deletes surplus revisions even if another step has failed.
    Result<void> forgotten =
        remove_revisions(client_, beyond_limit(*set, unused(observed, history), [](const Object&) { return false; }));
    if (!done) return done.take_error();
    if (!written) return written.take_error();
    TRY(std::move(forgotten));
    return Outcome{plan.again};
  }

 private:
  // Enqueues the sets for which a deleted pod or claim may have occupied a name.
  void enqueue_sets_with_name(const Object& gone, const Enqueue& enqueue,
                              bool (*whose)(const Object& set, std::string_view name)) {
    for (const ObjectPtr& set : sets_.list(gone.ns()))
      if (whose(*set, gone.name())) enqueue.now(set->key());
  }

  ObservedStatefulSet observe(const ObjectPtr& set, const History& history, std::vector<ObjectPtr> pods) {
    ObservedStatefulSet observed;
    observed.set = set;
    observed.current = observed.update = history.revision;
    std::string_view current = view::StatefulSet(*set).status().current_revision();
    for (const auto& revisions : {history.others, history.same})
      for (const ObjectPtr& revision : revisions)
        if (revision->name() == current) observed.current = revision;
    observed.collisions = history.collisions;
    observed.removed = own_.removed_among(set->key(), pods);
    observed.pods = std::move(pods);
    observed.backing_off = [this, set](const std::string& pod) { return failed_.wait(*set, pod); };
    observed.claim = [this, ns = set->ns()](const std::string& name) { return claims_.get({ns, name}); };
    return observed;
  }

  // Revisions without pods, which are needed only for a rollback.
  static std::vector<ObjectPtr> unused(const ObservedStatefulSet& observed, const History& history) {
    std::set<std::string_view> used{observed.current->name(), observed.update->name()};
    for (const ObjectPtr& pod : observed.pods) used.insert(pod->label(kRevisionLabel));
    std::vector<ObjectPtr> out = history.others;
    out.insert(out.end(), history.same.begin(), history.same.end());
    std::erase_if(out, [&](const ObjectPtr& revision) { return used.contains(revision->name()); });
    return out;
  }

  // ---- steps ----

  Result<void> apply(const Object& set, const std::vector<StatefulSetStep>& steps) {
    for (const StatefulSetStep& step : steps)  // stops at the first failure, because later steps depend on earlier ones
      TRY(apply(set, step));
    return {};
  }

  Result<void> apply(const Object& set, const StatefulSetStep& step) {
    switch (step.what) {
      case StatefulSetStep::What::create_claim: return create_claim(set, step);
      case StatefulSetStep::What::own_claim: return own_claim(set, step);
      case StatefulSetStep::What::claims_owned: tell(set, "update", step.pod); return {};
      case StatefulSetStep::What::conflict: tell_conflict(set, *step.object); return {};
      case StatefulSetStep::What::refuse: tell(set, "create", step.pod, std::string(step.body.get_string())); return {};
      case StatefulSetStep::What::create: return create(set, step);
      case StatefulSetStep::What::update: return update(set, step);
      case StatefulSetStep::What::remove: return remove(set, step);
    }
    return {};
  }

  Result<void> create_claim(const Object& set, const StatefulSetStep& step) {
    auto created = client_.create(kPersistentVolumeClaim, step.body);
    std::string claim(view::PersistentVolumeClaim(step.body).metadata().name());
    if (created) {
      recorder_.normal(set, "SuccessfulCreate",
                       "create Claim " + claim + " Pod " + step.pod + " in StatefulSet " + set.name() + " success");
      return {};
    }
    Error error = created.take_error();
    if (error.code() == Code::already_exists) return {};
    recorder_.warning(
        set, "FailedCreate",
        "create Claim " + claim + " for Pod " + step.pod + " in StatefulSet " + set.name() + " failed error: " + error.text());
    tell(set, "create", step.pod, "failed to create PVC " + claim + ": " + error.text());
    return std::move(error).wrap("create claim " + claim);
  }

  void tell_conflict(const Object& set, const Object& claim) {
    recorder_.warning(set, "ConflictingController",
                      "PersistentVolumeClaim " + claim.name() +
                          " has a conflicting OwnerReference that acts as a manging controller, the retention policy is ignored "
                          "for this claim");  // as Kubernetes spells it
  }

  Result<void> own_claim(const Object& set, const StatefulSetStep& step) {
    json::object metadata = precondition_metadata(*step.object);
    metadata["ownerReferences"] = step.body;
    json::value patch = {{"metadata", std::move(metadata)}};
    auto done = client_.patch(kPersistentVolumeClaim, step.object->key(), PatchType::merge, patch);
    if (done || done.error().code() == Code::not_found) return {};
    std::string why = "could not update claim " + step.object->name() + " for delete policy ownerRefs: " + done.error().text();
    if (done.error().code() != Code::conflict) tell(set, "update", step.pod, why);
    return done.take_error().wrap("own claim " + step.object->name());
  }

  Result<void> create(const Object& set, const StatefulSetStep& step) {
    auto created = client_.create(kPod, step.body);
    if (created) {
      own_.wrote(set.key(), (*created)->revision());
      tell(set, "create", step.pod);
      return {};
    }
    Error error = created.take_error();
    if (namespace_terminating(error)) return {};
    if (error.code() != Code::already_exists) tell(set, "create", step.pod, error.text());
    return std::move(error).wrap("create pod " + step.pod);
  }

  Result<void> update(const Object& set, const StatefulSetStep& step) {
    auto updated = client_.update(kPod, step.body);
    if (updated) {
      own_.wrote(set.key(), (*updated)->revision());
      tell(set, "update", step.pod);
      return {};
    }
    Error error = updated.take_error();
    if (error.code() != Code::conflict) tell(set, "update", step.pod, error.text());
    return std::move(error).wrap("update pod " + step.pod);
  }

  Result<void> remove(const Object& set, const StatefulSetStep& step) {
    auto removed = client_.remove(kPod, step.object->key(), {.uid = step.object->uid()});
    if (removed || removed.error().code() == Code::not_found) {
      own_.removed(set.key(), step.object->uid());
      if (is_terminal(view::Pod(*step.object))) failed_.tried(set, step.pod);
      tell(set, "delete", step.pod);
      return {};
    }
    Error error = removed.take_error();
    tell(set, "delete", step.pod, error.text());
    return std::move(error).wrap("remove pod " + step.pod);
  }

  // `failure`: the error; "" on success.
  void tell(const Object& set, const std::string& verb, const std::string& pod, const std::string& failure = "") {
    std::string what = verb + " Pod " + pod + " in StatefulSet " + set.name(), reason = verb;
    reason[0] = char(reason[0] - 'a' + 'A');
    if (failure.empty()) recorder_.normal(set, "Successful" + reason, what + " successful");
    else recorder_.warning(set, "Failed" + reason, what + " failed error: " + failure);
  }

  Client& client_;
  const Clock& clock_;
  Informer& sets_;
  Informer& pods_;
  Informer& claims_;
  Informer& revisions_;
  EventRecorder recorder_;
  OwnWrites own_;
  FailedPods failed_;
  SelectorIndex selectors_{selector_in_spec};
};

}  // namespace

std::unique_ptr<Controller> make_stateful_set_controller(const Context& context) {
  return std::make_unique<StatefulSetController>(context);
}

}  // namespace coracle::controller

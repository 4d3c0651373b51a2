// SPDX-License-Identifier: Apache-2.0
// DaemonSet: applies the plan of daemon_set.h and records events.
//   set, nodes, pods, revisions ──▶ key ──▶ history ──▶ claim pods ──▶ plan ──▶ create and delete pods ──▶ status
// Then surplus revisions are deleted. The controller waits until the cache shows its own writes (OwnWrites), so that no node gets
// two pods. Source: Kubernetes DaemonSet.
#include "daemon/controller/workload/daemon_set.h"

#include <algorithm>
#include <set>

#include "daemon/controller/controller.h"
#include "daemon/controller/workload/failed_pods.h"
#include "daemon/controller/workload/history.h"
#include "daemon/controller/workload/pod_control.h"
#include "daemon/controller/workload/set_watch.h"

namespace coracle::controller {
namespace {

constexpr std::chrono::seconds kDaemonSetBackOffMax{900};  // longest delay before a failed pod is replaced

bool same_to_pods(const Object& before, const Object& after) {
  return before.uid() == after.uid() && same_json(before.labels(), after.labels()) &&
         same_json(view::Node(before).spec().taints().raw(), view::Node(after).spec().taints().raw());
}

class DaemonSetController : public Controller {
 public:
  explicit DaemonSetController(const Context& context)
      : client_(context.client),
        clock_(context.clock),
        sets_(context.informers.of(kDaemonSet)),
        pods_(context.informers.of(kPod)),
        nodes_(context.informers.of(kNode)),
        revisions_(context.informers.of(kControllerRevision)),
        recorder_(context.events, "daemonset-controller"),
        own_(context.clock),
        control_(context.client, recorder_, own_),
        failed_(context.clock, kDaemonSetBackOffMax) {}

  std::string_view name() const override { return "daemonset"; }

  void subscribe(const Enqueue& enqueue) override {
    SetWatch{kDaemonSet, sets_, pods_, revisions_, own_, failed_, selectors_}.subscribe(enqueue);
    nodes_.on_change([=, this](const Informer::Change& change) {
      if (change.before && change.after && same_to_pods(*change.before, *change.after)) return;
      for (const ObjectPtr& set : sets_.list()) enqueue.now(set->key());
    });
  }

  Result<Outcome> reconcile(const Key& key) override {
    ObjectPtr set = sets_.get(key);
    if (!set) selectors_.forget(key);
    if (!set || set->deleting()) return Outcome{};  // the garbage collector handles its pods and history
    if (!own_.shown(key, pods_)) return Outcome{OwnWrites::kLookAgain};
    auto selector = selectors_.of(*set);
    History history = TRY(keep_history(client_, revisions_, *set, selector.get(), kRevisionLabel));
    std::vector<ObjectPtr> pods = TRY(claim(client_, pods_, *set, selector.get(), false));
    std::string hash(hash_of(*history.revision));
    ObservedDaemonSet observed{.set = set, .hash = hash, .collisions = history.collisions, .nodes = nodes_.list()};
    TRY(unite(*set, history, pods));
    observed.removed = own_.removed_among(key, pods);
    observed.pods = std::move(pods);
    observed.backing_off = [this, &set](const std::string& node) { return failed_.wait(*set, node); };
    DaemonSetPlan plan = plan_daemon_set(observed, clock_.now());
    Result<void> done = apply(*set, observed.hash, plan);
    Result<void> written = write_status(client_, *set, std::move(plan.status));
    std::set<std::string_view> hashes;
    for (const ObjectPtr& pod : observed.pods) hashes.insert(pod->label(kRevisionLabel));
    auto has_pods = [&](const Object& revision) { return hashes.contains(hash_of(revision)); };
    // Deletes surplus revisions even if another step has failed.
    Result<void> forgotten = remove_revisions(client_, beyond_limit(*set, history.others, has_pods));
    if (!done) return done.take_error();
    if (!written) return written.take_error();
    TRY(std::move(forgotten));
    return Outcome{plan.again};
  }

 private:
  // An adopted revision may lack the label: then its pods have its name.
  static std::string_view hash_of(const Object& revision) {
    std::string_view hash = revision.label(kRevisionLabel);
    return hash.empty() ? std::string_view(revision.name()) : hash;
  }

  // If several revisions have the set's template, keeps one and relabels the pods of the others.
  Result<void> unite(const Object& set, const History& history, std::vector<ObjectPtr>& pods) {
    if (history.same.empty()) return {};
    std::string_view hash = hash_of(*history.revision);
    std::set<std::string_view> others;
    for (const ObjectPtr& revision : history.same) others.insert(hash_of(*revision));
    for (ObjectPtr& pod : pods) {
      if (pod->label(kRevisionLabel) == hash || !others.contains(pod->label(kRevisionLabel))) continue;
      json::value patch = {{"metadata", {{"uid", pod->uid()}, {"labels", {{kRevisionLabel, hash}}}}}};
      pod = TRY(client_.patch(kPod, pod->key(), PatchType::merge, patch).wrap("label pod " + pod->name()));
      own_.wrote(set.key(), pod->revision());
    }
    return remove_revisions(client_, history.same);
  }

  Result<void> apply(const Object& set, const std::string& hash, const DaemonSetPlan& plan) {
    Failure failure;                             // recorded as an event, because this kind's status has no field for it
    for (const std::string& node : plan.create)  // stops at the first failure, because the others would fail for the same reason
      TRY(control_.create(set, daemon_pod(set, hash, node), failure));
    for (const DaemonSetPlan::Removal& removal : plan.remove) {
      if (removal.reason == "FailedDaemonPod") recorder_.warning(set, removal.reason, removal.message);
      else if (!removal.reason.empty()) recorder_.normal(set, removal.reason, removal.message);
      TRY(control_.remove(set, *removal.pod, failure));
      if (!removal.failed_on.empty()) failed_.tried(set, removal.failed_on);
    }
    return {};
  }

  Client& client_;
  const Clock& clock_;
  Informer& sets_;
  Informer& pods_;
  Informer& nodes_;
  Informer& revisions_;
  EventRecorder recorder_;
  OwnWrites own_;
  PodControl control_;
  FailedPods failed_;
  SelectorIndex selectors_{selector_in_spec};
};

}  // namespace

std::unique_ptr<Controller> make_daemon_set_controller(const Context& context) {
  return std::make_unique<DaemonSetController>(context);
}

}  // namespace coracle::controller

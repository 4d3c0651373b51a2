// SPDX-License-Identifier: Apache-2.0
// ReplicaSet and ReplicationController: keeps the desired number of pods of one template.
//   set or pod changes ──▶ key of the set ──▶ claim pods ──▶ plan ──▶ create or delete pods ──▶ status
// The controller waits until the cache shows its own writes (OwnWrites), so that no pod is created twice. Replacements of ended
// pods are created with back-off (FailedPods), because ended pods stay in the store and their successors may end as fast. The two
// kinds differ in name, in the format of the selector, and in the fields of the status. Source: Kubernetes ReplicaSet,
// ReplicationController; reasons of events and conditions are Kubernetes'.
#include "daemon/controller/workload/replica_set.h"

#include <algorithm>
#include <tuple>

#include "daemon/controller/controller.h"
#include "daemon/controller/workload/failed_pods.h"
#include "runtime/base/text.h"
#include "store/object/selector.h"

namespace coracle::controller {
namespace {

// Order of deletion: smaller ranks first.
struct Rank {
  bool assigned;
  int phase;  // Pending, Unknown, Running
  bool ready;
  int64_t deletion_cost;
  int64_t uncrowded;     // minus the number of siblings on the same node
  int64_t ready_before;  // minus the time of readiness: the youngest first
  int64_t fewer_restarts;
  std::string_view older;  // creation time, compared in reverse
  std::string_view name;
};

int phase_rank(std::string_view phase) { return phase == "Running" ? 2 : phase == "Unknown" ? 1 : 0; }

int64_t restarts(view::Pod pod) {
  int64_t most = 0;
  for (view::ContainerStatus status : pod.status().container_statuses()) most = std::max(most, status.restart_count());
  return most;
}

Rank rank_of(const Object& object, const std::map<std::string_view, int64_t>& crowd) {
  view::Pod pod(object);
  std::string_view node = pod.spec().node_name();
  auto on_node = crowd.find(node);
  auto since = pod_available_at(pod, std::chrono::seconds(1));
  auto cost = parse_number<int64_t>(object.annotation("controller.kubernetes.io/pod-deletion-cost"));
  return {!node.empty(),
          phase_rank(pod.status().phase()),
          since.has_value(),
          cost.value_or(0),
          on_node == crowd.end() ? 0 : -on_node->second,
          since ? -since->time_since_epoch().count() : 0,
          -restarts(pod),
          pod.metadata().creation_timestamp(),
          object.name()};
}

bool ranks_before(const Rank& a, const Rank& b) {
  auto key = [](const Rank& r) {
    return std::tie(r.assigned, r.phase, r.ready, r.deletion_cost, r.uncrowded, r.ready_before, r.fewer_restarts);
  };
  if (key(a) != key(b)) return key(a) < key(b);
  if (a.older != b.older) return a.older > b.older;
  return a.name < b.name;
}

std::vector<ObjectPtr> lowest_ranked(size_t count, const std::vector<ObjectPtr>& active, const std::vector<ObjectPtr>& siblings) {
  std::map<std::string_view, int64_t> crowd;
  for (const ObjectPtr& pod : siblings)
    if (std::string_view node = view::Pod(*pod).spec().node_name(); !node.empty()) ++crowd[node];
  std::vector<std::pair<Rank, ObjectPtr>> ranked;
  for (const ObjectPtr& pod : active) ranked.emplace_back(rank_of(*pod, crowd), pod);
  std::sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return ranks_before(a.first, b.first); });
  std::vector<ObjectPtr> chosen;
  for (size_t i = 0; i < count; ++i) chosen.push_back(std::move(ranked[i].second));
  return chosen;
}

}  // namespace

ReplicaSetPlan plan_replica_set(int64_t replicas, std::vector<ObjectPtr> active, const std::vector<ObjectPtr>& siblings) {
  int64_t missing = replicas - int64_t(active.size());
  if (missing >= 0) return {std::min(missing, kReplicaSetBurst), {}};
  return {0, lowest_ranked(size_t(std::min(-missing, kReplicaSetBurst)), active, siblings)};
}

json::value replica_set_status(const Object& object, const std::vector<ObjectPtr>& active, size_t terminating,
                               const Failure& failure, WallTime now) {
  view::ReplicaSet set(object);
  LabelSelector full = LabelSelector::from_map(set.spec().template_().metadata().labels());
  std::chrono::seconds min_ready = bounded_seconds(set.spec().min_ready_seconds());
  int64_t labeled = 0, ready = 0, available = 0;
  for (const ObjectPtr& pod : active) {
    labeled += full.matches(*pod);
    ready += is_ready(view::Pod(*pod));
    available += pod_available(view::Pod(*pod), min_ready, now);
  }
  json::object status = set.status().members();
  status["replicas"] = int64_t(active.size());
  set_count(status, "fullyLabeledReplicas", labeled);
  set_count(status, "readyReplicas", ready);
  set_count(status, "availableReplicas", available);
  if (terminating || status.contains("terminatingReplicas")) status["terminatingReplicas"] = int64_t(terminating);
  status["observedGeneration"] = set.metadata().generation();
  json::array conditions = set.status().conditions().raw();
  if (failure.message.empty()) drop_condition(conditions, "ReplicaFailure");
  else if (!find_condition(conditions, "ReplicaFailure"))
    set_condition(conditions, {"ReplicaFailure", "True", failure.reason, failure.message}, now);
  if (conditions.empty()) status.erase("conditions");
  else status["conditions"] = std::move(conditions);
  return status;
}

namespace {

constexpr std::chrono::seconds kReplicaSetBackOffMax{300};  // longest delay before replacements of ended pods

struct Flavour {
  const Kind& kind;
  std::string_view name, reporter;
  bool plain_selector;      // the selector is a map of labels
  bool counts_terminating;  // its status has terminatingReplicas
};
constexpr Flavour kOfReplicaSets{kReplicaSet, "replicaset", "replicaset-controller", false, true};
constexpr Flavour kOfReplicationControllers{kReplicationController, "replicationcontroller", "replication-controller", true,
                                            false};

class ReplicaSetController : public Controller {
 public:
  ReplicaSetController(const Context& context, const Flavour& flavour)
      : flavour_(flavour),
        client_(context.client),
        clock_(context.clock),
        sets_(context.informers.of(flavour.kind)),
        pods_(context.informers.of(kPod)),
        own_(context.clock),
        control_(context.client, EventRecorder(context.events, std::string(flavour.reporter)), own_),
        failed_(context.clock, kReplicaSetBackOffMax) {}

  std::string_view name() const override { return flavour_.name; }

  void subscribe(const Enqueue& enqueue) override {
    index_by_controller(sets_);
    index_by_controller(pods_);
    follow(sets_, selectors_);
    sets_.on_change([=, this](const Informer::Change& change) {
      if (!change.after) forget(*change.before);
      enqueue.now(change.any().key());
    });
    pods_.on_change([=, this](const Informer::Change& change) { enqueue_owners(change, flavour_.kind, selectors_, enqueue); });
  }

  Result<Outcome> reconcile(const Key& key) override {
    ObjectPtr object = sets_.get(key);
    if (!object) return selectors_.forget(key), Outcome{};
    if (!own_.shown(key, pods_)) return Outcome{OwnWrites::kLookAgain};
    view::ReplicaSet set(*object);
    std::vector<ObjectPtr> claimed = TRY(claim(client_, pods_, *object, selectors_.of(*object).get(), true));
    std::vector<ObjectPtr> active = own_.without_removed(key, std::move(claimed));
    Failure failure;
    Result<void> managed;
    std::optional<std::chrono::nanoseconds> again =
        next_available(active, bounded_seconds(set.spec().min_ready_seconds()), clock_.now());
    if (!object->deleting()) managed = manage(*object, active, failure, again);
    Result<void> written = write_status(
        client_, *object,
        replica_set_status(*object, active, flavour_.counts_terminating ? terminating(*object) : 0, failure, clock_.now()));
    if (!managed) return managed.take_error();
    if (!written) return written.take_error();
    return Outcome{again};
  }

 private:
  void forget(const Object& set) {
    own_.forget(set.key());
    failed_.forget(set);
    succeeded_.with([&](auto& succeeded) { succeeded.erase(set.uid()); });
  }

  // `again` is reduced if pods wait for their back-off.
  Result<void> manage(const Object& set, const std::vector<ObjectPtr>& active, Failure& failure,
                      std::optional<std::chrono::nanoseconds>& again) {
    ReplicaSetPlan plan = plan_replica_set(view::ReplicaSet(set).spec().replicas_or(1), active, siblings(set, active));
    std::set<std::string> ended = ended_pods(set);
    int64_t successors = std::min(plan.create, count_without_successor(set, ended));
    std::optional<std::chrono::nanoseconds> wait;
    if (successors) wait = failed_.wait(set, {});
    if (wait) {
      plan.create -= successors;
      again = again ? std::min(*again, *wait) : *wait;
    }
    for (int64_t i = 0; i < plan.create; ++i)  // stops at the first failure, because the others would fail for the same reason
      TRY(control_.create(set, pod_from_template(set, view::ReplicaSet(set).spec().template_().raw()), failure));
    for (const ObjectPtr& pod : plan.remove) {
      TRY(control_.remove(set, *pod, failure));
    }
    if (wait) return {};
    if (successors) failed_.tried(set, {});
    succeeded_.with([&](auto& succeeded) {
      if (ended.empty()) succeeded.erase(set.uid());
      else succeeded[set.uid()] = std::move(ended);
    });
    return {};
  }

  // Ended pods that were not deleted on request.
  std::set<std::string> ended_pods(const Object& set) const {
    std::set<std::string> uids;
    for (const ObjectPtr& pod : controlled_by(pods_, set))
      if (!pod->deleting() && is_terminal(view::Pod(*pod))) uids.insert(pod->uid());
    return uids;
  }

  int64_t count_without_successor(const Object& set, const std::set<std::string>& ended) const {
    return succeeded_.with([&](const auto& succeeded) {
      auto known = succeeded.find(set.uid());
      return std::count_if(ended.begin(), ended.end(),
                           [&](const std::string& uid) { return known == succeeded.end() || !known->second.contains(uid); });
    });
  }

  std::vector<ObjectPtr> siblings(const Object& set, const std::vector<ObjectPtr>& active) const {
    auto owner = set.controller();
    if (!owner) return active;
    std::vector<ObjectPtr> all;
    for (const ObjectPtr& sibling : sets_.by_index("controller", owner->uid))
      for (ObjectPtr& pod : controlled_by(pods_, *sibling))
        if (pod_active(*pod)) all.push_back(std::move(pod));
    return all;
  }

  size_t terminating(const Object& set) const {
    auto all = controlled_by(pods_, set);
    return size_t(std::count_if(all.begin(), all.end(),
                                [](const ObjectPtr& pod) { return pod->deleting() && !is_terminal(view::Pod(*pod)); }));
  }

  const Flavour flavour_;
  Client& client_;
  const Clock& clock_;
  Informer& sets_;
  Informer& pods_;
  OwnWrites own_;
  PodControl control_;
  FailedPods failed_;
  SelectorIndex selectors_{flavour_.plain_selector ? selector_of_service : selector_in_spec};
  Guarded<std::map<std::string, std::set<std::string>>> succeeded_;  // by set: the ended pods that were replaced
};

}  // namespace

std::unique_ptr<Controller> make_replica_set_controller(const Context& context) {
  return std::make_unique<ReplicaSetController>(context, kOfReplicaSets);
}

std::unique_ptr<Controller> make_replication_controller(const Context& context) {
  return std::make_unique<ReplicaSetController>(context, kOfReplicationControllers);
}

}  // namespace coracle::controller

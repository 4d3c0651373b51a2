// SPDX-License-Identifier: Apache-2.0
// Node lifecycle: handles nodes that no longer report their status.
//
//   lease or status renewed ─▶ seen (steady time) ── silent for too long ─▶ conditions Unknown ─┐
//   conditions, spec.unschedulable ────────────────────────────────────────────────────────────┴─▶ taints ─▶ scheduler,
//                                                                                                  taint_eviction.cc
//   a node not ready ─▶ its pods not ready ─▶ endpoints drop them
//
// Silence is measured from the time when a renewal was observed, not from the time written in it: clocks differ, and a board's
// clock jumps from 1970 to the present. This machine's own node is never considered silent, because its agent runs in this
// process; its conditions are handled like those of other nodes. Source: Kubernetes "Nodes", "Node heartbeats";
// kube-controller-manager's node lifecycle controller (semantics).
#include "daemon/controller/pod/node_lifecycle.h"

#include <algorithm>
#include <map>

#include "daemon/controller/controller.h"
#include "daemon/controller/shared/common.h"
#include "daemon/placement/placement.h"

namespace coracle::controller {
namespace {

constexpr std::string_view kLeaseNamespace = "kube-node-lease";
constexpr std::chrono::seconds kHeartbeat{10};     // a live kubelet renews at least once within it
constexpr std::chrono::seconds kStartupGrace{60};  // --node-startup-grace-period: for a node that has never reported
constexpr std::string_view kJudged[] = {"Ready", "MemoryPressure", "DiskPressure", "PIDPressure"};

class NodeLifecycle : public Controller {
 public:
  explicit NodeLifecycle(const Context& context)
      : client_(context.client),
        clock_(context.clock),
        local_(context.config.local_node),
        grace_(context.config.node_grace),
        nodes_(context.informers.of(kNode)),
        leases_(context.informers.of(kLease)),
        pods_(context.informers.of(kPod)),
        recorder_(context.events, "node-controller") {}

  std::string_view name() const override { return "nodelifecycle"; }

  void subscribe(const Enqueue& enqueue) override {
    index_by_node(pods_);
    nodes_.on_change([=, this](const Informer::Change& change) {
      enqueue.now(change.any().key());
      if (!change.after) tell(*change.before, "RemovingNode", "Removing Node " + change.before->name() + " from Controller");
      bool was = change.before && node_condition(*change.before, "Ready") == "True";
      bool is = change.after && node_condition(*change.after, "Ready") == "True";
      if (was == is) return;
      for (const ObjectPtr& other : nodes_.list())  // the eviction rate of their zone may have changed
        if (node_condition(*other, "Ready") != "True") enqueue.now(other->key());
    });
    leases_.on_change([=, this](const Informer::Change& change) {
      const Object& lease = change.any();
      if (lease.ns() == kLeaseNamespace && lease.name() != local_) enqueue.now({"", lease.name()});
    });
    pods_.on_change([=, this](const Informer::Change& change) {
      if (!change.after || !is_ready(view::Pod(*change.after))) return;
      std::string name(view::Pod(*change.after).spec().node_name());
      ObjectPtr node = name.empty() ? nullptr : nodes_.get({"", name});
      if (node && is_down(*node)) enqueue.now(node->key());
    });
  }

  Result<Outcome> reconcile(const Key& key) override {
    ObjectPtr node = nodes_.get(key);
    if (!node) {
      leave(key.name);
      return Outcome{};
    }
    welcome(*node);
    std::optional<SteadyTime> silent_at;  // nullopt: it is silent already, or is not checked
    if (key.name != local_) silent_at = last_seen(*node) + (node_condition(*node, "Ready").empty() ? kStartupGrace : grace_);
    if (silent_at && *silent_at <= clock_.steady()) {
      bool changed = TRY(mark_unknown(*node));
      if (changed) return Outcome{};  // the change enqueues it again
      silent_at.reset();
    }
    note_readiness(*node);
    std::optional<std::chrono::nanoseconds> again = TRY(taint(*node));
    if (is_down(*node)) {
      std::optional<std::chrono::nanoseconds> mark_in = TRY(mark_pods(*node));
      sooner(again, mark_in);
    }
    if (silent_at) sooner(again, *silent_at - clock_.steady());
    return Outcome{again};
  }

 private:
  struct Known {            // the state of a node; used by reconcile only, which runs once at a time per node
    std::string uid, said;  // `said`: the renewals, as they were written
    SteadyTime heard{};
    std::string ready, ready_since;
    std::map<std::string, SteadyTime> marked;  // by pod uid: when the pod was marked not ready since ready_since
  };

  static void sooner(std::optional<std::chrono::nanoseconds>& again, std::optional<std::chrono::nanoseconds> in) {
    if (in && (!again || *in < *again)) again = in;
  }

  static bool is_down(const Object& node) {
    std::string_view ready = node_condition(node, "Ready");
    return ready == "False" || ready == "Unknown";
  }

  void welcome(const Object& node) {
    known_.with([&](auto& known) {
      Known& it = known[node.name()];
      if (it.uid == node.uid()) return;
      it = {.uid = node.uid(), .heard = clock_.steady()};
      tell(node, "RegisteredNode", "Registered Node " + node.name() + " in Controller");
    });
  }

  void leave(const std::string& name) {
    known_.with([&](auto& known) { known.erase(name); });
  }

  void tell(const Object& node, std::string_view reason, const std::string& what) const {
    recorder_.normal(node, reason, "Node " + node.name() + " event: " + what);
  }

  // When a renewal was last observed.
  SteadyTime last_seen(const Object& node) {
    std::string said;
    if (ObjectPtr lease = leases_.get({std::string(kLeaseNamespace), node.name()}))
      said = view::Lease(*lease).spec().renew_time();
    for (view::NodeCondition condition : view::Node(node).status().conditions())
      if (condition.type() == "Ready") said.append(" ").append(condition.last_heartbeat_time());
    return known_.with([&](auto& known) {
      Known& it = known[node.name()];
      if (it.said != said) it.said = said, it.heard = clock_.steady();
      return it.heard;
    });
  }

  // Returns whether the node was changed.
  Result<bool> mark_unknown(const Object& node) {
    json::array changed;
    for (std::string_view type : kJudged) {
      view::NodeCondition before(find_condition(node.json(), type));
      if (before.status() == "Unknown") continue;
      json::object condition{{"type", type}, {"lastHeartbeatTime", view::Node(node).metadata().creation_timestamp()}};
      if (before) condition = before.members();
      condition["status"] = "Unknown";
      condition["reason"] = before ? "NodeStatusUnknown" : "NodeStatusNeverUpdated";
      condition["message"] = before ? "Kubelet stopped posting node status." : "Kubelet never posted node status.";
      condition["lastTransitionTime"] = format_time(clock_.now());
      changed.push_back(std::move(condition));
    }
    if (changed.empty()) return false;
    json::value patch = {{"metadata", precondition_metadata(node)}, {"status", {{"conditions", std::move(changed)}}}};
    auto done = client_.patch(kNode, node.key(), PatchType::strategic, patch, {.subresource = "status"});
    if (!done) return done.take_error().wrap("mark node unknown");
    return true;
  }

  void note_readiness(const Object& node) {
    std::string ready(node_condition(node, "Ready")), since;
    since = view::NodeCondition(find_condition(node.json(), "Ready")).last_transition_time();
    bool lost = known_.with([&](auto& known) {
      Known& it = known[node.name()];
      std::string before = std::exchange(it.ready, ready);
      if (before != ready || it.ready_since != since) it.ready_since = since, it.marked.clear();
      return before == "True" && ready != "True";
    });
    if (lost) recorder_.normal(node, "NodeNotReady", "Node " + node.name() + " status is now: NodeNotReady");
  }

  // The time until the NoExecute taint may be added, if the eviction rate requires a wait.
  Result<std::optional<std::chrono::nanoseconds>> taint(const Object& node) {
    std::optional<std::chrono::nanoseconds> until_taint = until_taint_of(node);
    bool may_empty = until_taint && until_taint->count() <= 0;
    json::array taints = wanted_taints(node, may_empty, clock_.now());
    if (!same_json(taints, view::Node(node).spec().taints().raw())) {
      bool empties = is_down(node) && may_empty && !same_json(wanted_taints(node, false, clock_.now()), taints);
      json::value patch = {{"metadata", precondition_metadata(node)}, {"spec", {{"taints", std::move(taints)}}}};
      auto done = client_.patch(kNode, node.key(), PatchType::merge, patch);
      if (!done) return done.take_error().wrap("taint node");
      if (empties) emptied_.with([&](auto& emptied) { emptied[placement::zone_of(node.labels())] = clock_.steady(); });
    }
    bool waits = is_down(node) && !may_empty && until_taint &&
                 !same_json(wanted_taints(node, true, clock_.now()), wanted_taints(node, false, clock_.now()));
    return waits ? until_taint : std::nullopt;
  }

  // The time until another node of its zone may be evicted; nullopt: none, in the zone's present state.
  std::optional<std::chrono::nanoseconds> until_taint_of(const Object& node) {
    std::string zone = placement::zone_of(node.labels());
    ZoneCount count;
    for (const ObjectPtr& other : nodes_.list())
      if (placement::zone_of(other->labels()) == zone) ++(is_down(*other) ? count.not_ready : count.ready);
    auto pace = pace_of(count);
    if (!pace) return std::nullopt;
    return emptied_.with([&](const auto& emptied) -> std::chrono::nanoseconds {
      auto last = emptied.find(zone);
      return last == emptied.end() ? std::chrono::nanoseconds(0) : last->second + *pace - clock_.steady();
    });
  }

  // Marks the pods of a node that is not ready as not ready, once each, because their own kubelet cannot. A kubelet that is
  // running may overwrite that. A node that was wrongly considered silent does so within a heartbeat; otherwise the pods are
  // marked again. Returns the time until then.
  Result<std::optional<std::chrono::nanoseconds>> mark_pods(const Object& node) {
    std::optional<std::chrono::nanoseconds> again;
    for (const ObjectPtr& pod : pods_.by_index("node", node.name())) {
      if (!is_ready(view::Pod(*pod))) continue;
      std::optional<std::chrono::nanoseconds> due = mark_due_in(node, pod->uid());
      if (!due || due->count() > 0) {
        sooner(again, due);
        continue;
      }
      TRY(mark_pod(*pod));
      known_.with([&](auto& known) { known[node.name()].marked[pod->uid()] = clock_.steady(); });
    }
    return again;
  }

  // nullopt: it was marked already.
  std::optional<std::chrono::nanoseconds> mark_due_in(const Object& node, const std::string& uid) {
    return known_.with([&](const auto& known) -> std::optional<std::chrono::nanoseconds> {
      const Known& it = known.at(node.name());
      auto last = it.marked.find(uid);
      if (last == it.marked.end()) return std::chrono::nanoseconds(0);
      if (it.ready != "Unknown") return std::nullopt;
      return last->second + kHeartbeat - clock_.steady();
    });
  }

  Result<void> mark_pod(const Object& pod) {
    json::value condition = *find_condition(pod.json(), "Ready");
    condition.as_object()["status"] = "False";
    condition.as_object()["lastTransitionTime"] = format_time(clock_.now());
    json::value patch = {{"metadata", {{"uid", pod.uid()}}}, {"status", {{"conditions", json::array{std::move(condition)}}}}};
    auto done = client_.patch(kPod, pod.key(), PatchType::strategic, patch, {.subresource = "status"});
    if (done) return recorder_.warning(pod, "NodeNotReady", "Node is not ready"), Result<void>();
    if (done.error().code() != Code::not_found) return done.take_error().wrap("mark pod of a node that is not ready");
    return {};
  }

  Client& client_;
  const Clock& clock_;
  const std::string local_;
  const std::chrono::seconds grace_;
  Informer& nodes_;
  Informer& leases_;
  Informer& pods_;
  EventRecorder recorder_;
  Guarded<std::map<std::string, Known>> known_;
  Guarded<std::map<std::string, SteadyTime>> emptied_;  // by zone: when a node of it was last evicted
};

}  // namespace

std::unique_ptr<Controller> make_node_lifecycle(const Context& context) { return std::make_unique<NodeLifecycle>(context); }

}  // namespace coracle::controller

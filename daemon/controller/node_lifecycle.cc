// SPDX-License-Identifier: Apache-2.0
// Node lifecycle: a remote node whose lease is not renewed is no longer ready, and says so by condition and taint. This
// machine's own node is never judged: when it does not run, neither do we. On any node, the taint not-ready follows what the
// node says of itself: admission gives it to each new one. Source: Kubernetes node heartbeats (leases); taint nodes by condition.
#include <algorithm>

#include "daemon/controller/common.h"
#include "daemon/controller/controller.h"

namespace coracle::controller {
namespace {

constexpr std::string_view kLeaseNamespace = "kube-node-lease";
constexpr std::string_view kNotReady = "node.kubernetes.io/not-ready";
constexpr std::string_view kUnreachable = "node.kubernetes.io/unreachable";

class NodeLifecycle : public Controller {
 public:
  explicit NodeLifecycle(const Context& context)
      : client_(context.client),
        clock_(context.clock),
        local_(context.config.local_node),
        grace_(context.config.node_grace),
        nodes_(context.informers.of(kNode)),
        leases_(context.informers.of(kLease)),
        recorder_(context.events, "node-controller") {}

  std::string_view name() const override { return "nodelifecycle"; }

  void subscribe(const LookAt& look_at) override {
    nodes_.on_change([=, this](const Informer::Change& change) {
      if (change.after) look_at.now(change.after->key());
    });
    leases_.on_change([=, this](const Informer::Change& change) {
      const Object& lease = change.any();
      if (lease.ns() == kLeaseNamespace && lease.name() != local_) look_at.now({"", lease.name()});
    });
  }

  Result<Outcome> reconcile(const Key& key) override {
    ObjectPtr node = nodes_.get(key);
    if (!node) return Outcome{};
    bool changed = TRY(taint_unready(*node));
    if (changed || key.name == local_) return Outcome{};  // a change names it again
    ObjectPtr lease = leases_.get({std::string(kLeaseNamespace), key.name});
    if (!lease) return Outcome{};
    auto renewed = parse_time(view::Lease(*lease).spec().renew_time());
    if (!renewed) return Outcome{};
    WallTime due = *renewed + grace_;
    bool silent = due <= clock_.now();
    TRY(judge(*node, silent));
    if (silent) return Outcome{};
    return Outcome{due - clock_.now() + std::chrono::seconds(1)};
  }

 private:
  // True: the node was changed.
  Result<bool> taint_unready(const Object& node) {
    const json::value* ready = find_condition(get_array(node.json(), "status.conditions"), "Ready");
    if (!ready) return false;
    bool wanted = get_string(*ready, "status") == "False", tainted = false;
    json::array taints;
    for (const json::value& taint : get_array(node.json(), "spec.taints")) {
      bool ours = get_string(taint, "key") == kNotReady && get_string(taint, "effect") == "NoSchedule";
      tainted |= ours;
      if (!ours) taints.push_back(taint);
    }
    if (wanted == tainted) return false;
    if (wanted) taints.push_back({{"key", kNotReady}, {"effect", "NoSchedule"}, {"timeAdded", format_time(clock_.now())}});
    json::value patch = {{"metadata", {{"resourceVersion", std::to_string(node.revision())}}}, {"spec", {{"taints", taints}}}};
    auto done = client_.patch(kNode, node.key(), PatchType::merge, patch);
    if (!done) return done.take_error().wrap("taint node");
    return true;
  }

  Result<void> judge(const Object& node, bool silent) {
    bool tainted = false;
    json::array taints;
    for (const json::value& taint : get_array(node.json(), "spec.taints")) {
      bool ours = get_string(taint, "key") == kUnreachable;
      tainted |= ours;
      if (!ours) taints.push_back(taint);
    }
    if (silent) {
      TRY(mark_unknown(node));
    }
    if (silent == tainted) return {};
    for (std::string_view effect : {"NoSchedule", "NoExecute"})
      if (silent)
        taints.push_back({{"key", kUnreachable}, {"effect", effect}, {"timeAdded", format_time(clock_.now())}});
    json::value patch = {{"metadata", {{"resourceVersion", std::to_string(node.revision())}}},
                         {"spec", {{"taints", taints}}}};
    auto done = client_.patch(kNode, node.key(), PatchType::merge, patch);
    if (!done) return done.take_error().wrap("taint node");
    if (silent) recorder_.normal(node, "NodeNotReady", "Node " + node.name() + " status is now: NodeNotReady");
    return {};
  }

  Result<void> mark_unknown(const Object& node) {
    const json::array& conditions = get_array(node.json(), "status.conditions");
    const json::value* ready = find_condition(conditions, "Ready");
    if (ready && get_string(*ready, "status") == "Unknown") return {};
    std::string now = format_time(clock_.now());
    json::value patch = {{"status",
                          {{"conditions", json::array{{{"type", "Ready"},
                                                       {"status", "Unknown"},
                                                       {"reason", "NodeStatusUnknown"},
                                                       {"message", "Kubelet stopped posting node status."},
                                                       {"lastTransitionTime", now}}}}}}};
    auto done = client_.patch(kNode, node.key(), PatchType::strategic, patch, {.subresource = "status"});
    if (!done) return done.take_error().wrap("mark node unknown");
    return {};
  }

  Client& client_;
  const Clock& clock_;
  const std::string local_;
  const std::chrono::seconds grace_;
  Informer& nodes_;
  Informer& leases_;
  EventRecorder recorder_;
};

}  // namespace

std::unique_ptr<Controller> make_node_lifecycle(const Context& context) {
  return std::make_unique<NodeLifecycle>(context);
}

}  // namespace coracle::controller

// SPDX-License-Identifier: Apache-2.0
// Pod garbage collector: deletes pods that nothing else would delete. These are pods bound to a deleted node, terminating pods
// without a node or on a node with the out-of-service taint, and the oldest finished pods above a limit.
//   keys: {"node", name} a node's pods · {"finished", ""} the limit · {"pod/<namespace>", name} one pod
// Source: Kubernetes pkg/controller/podgc; "Non-graceful node shutdown".
#include <algorithm>
#include <tuple>

#include "daemon/controller/controller.h"
#include "daemon/controller/shared/common.h"

namespace coracle::controller {
namespace {

constexpr std::chrono::seconds kVanishedGrace{40};  // a node that registers again keeps its pods
constexpr std::string_view kOutOfService = "node.kubernetes.io/out-of-service";

// Whether an administrator has declared that the node does not run.
bool out_of_service(const Object& node) {
  view::Range<view::Taint> taints = view::Node(node).spec().taints();
  return !has_true_condition(node.json(), "Ready") &&
         std::any_of(taints.begin(), taints.end(), [](view::Taint taint) { return taint.key() == kOutOfService; });
}

// The order of deletion: evicted pods first, because the others may still be examined.
auto order_of_going(const Object& pod) {
  bool evicted = view::Pod(pod).status().phase() == "Failed" && view::Pod(pod).status().reason() == "Evicted";
  return std::tuple(!evicted, view::Pod(pod).metadata().creation_timestamp(), std::string_view(pod.name()));
}

class PodCollector : public Controller {
 public:
  explicit PodCollector(const Context& context)
      : client_(context.client),
        clock_(context.clock),
        finished_max_(context.config.terminated_pods_max),
        pods_(context.informers.of(kPod)),
        nodes_(context.informers.of(kNode)) {}

  std::string_view name() const override { return "podcollector"; }

  void subscribe(const Enqueue& enqueue) override {
    index_by_node(pods_);
    pods_.add_index("finished", [](const Object& pod) {
      return is_terminal(view::Pod(pod)) ? std::vector<std::string>{"yes"} : std::vector<std::string>{};
    });
    nodes_.on_change([=](const Informer::Change& change) {
      if (!change.after) enqueue.after({"node", change.before->name()}, kVanishedGrace);
      else if (out_of_service(*change.after)) enqueue.now({"node", change.after->name()});
    });
    pods_.on_change([=, this](const Informer::Change& change) {
      if (!change.after) return;
      const Object& pod = *change.after;
      std::string node(view::Pod(pod).spec().node_name());
      if (node.empty() && pod.deleting()) enqueue.now({"pod/" + pod.ns(), pod.name()});
      ObjectPtr there = node.empty() ? nullptr : nodes_.get({"", node});
      if (!node.empty() && !there) enqueue.after({"node", node}, kVanishedGrace);
      if (there && pod.deleting() && out_of_service(*there)) enqueue.now({"node", node});
      if (is_terminal(view::Pod(pod)) && pods_.count_by_index("finished", "yes") > finished_max_) enqueue.now({"finished", ""});
    });
  }

  Result<Outcome> reconcile(const Key& key) override {
    if (key.ns == "node") {
      TRY(collect_orphans(key.name));
    } else if (key.ns == "finished") {
      TRY(collect_finished());
    } else if (ObjectPtr pod = pods_.get({key.ns.substr(key.ns.find('/') + 1), key.name})) {
      bool unbound = view::Pod(*pod).spec().node_name().empty() && pod->deleting();
      if (!unbound) return Outcome{};
      TRY(mark_failed(*pod));  // the owner of a finalizer may wait for its end
      TRY(remove_now(*pod));
    }
    return Outcome{};
  }

 private:
  Result<void> collect_orphans(const std::string& node) {
    if (ObjectPtr there = nodes_.get({"", node})) return out_of_service(*there) ? collect_ending(node) : Result<void>();
    auto live = client_.get(kNode, {"", node});
    if (live) return {};
    if (live.error().code() != Code::not_found) return live.take_error();
    for (const ObjectPtr& pod : pods_.by_index("node", node)) {
      TRY(mark_failed(*pod, "PodGC: node no longer exists"));
      TRY(remove_now(*pod));
    }
    return {};
  }

  Result<void> collect_ending(const std::string& node) {
    for (const ObjectPtr& pod : pods_.by_index("node", node)) {
      if (!pod->deleting()) continue;
      TRY(mark_failed(*pod));
      TRY(remove_now(*pod));
    }
    return {};
  }

  // `disruption`: the reason, if nobody has requested the deletion.
  Result<void> mark_failed(const Object& pod, std::string_view disruption = {}) {
    if (is_terminal(view::Pod(pod))) return {};
    json::object status{{"phase", "Failed"}};
    if (!disruption.empty())
      status["conditions"] = json::array{{{"type", "DisruptionTarget"},
                                          {"status", "True"},
                                          {"reason", "DeletionByPodGC"},
                                          {"message", disruption},
                                          {"lastTransitionTime", format_time(clock_.now())}}};
    // The uid protects a new pod with the same name.
    json::value patch = {{"metadata", {{"uid", pod.uid()}}}, {"status", std::move(status)}};
    auto done = client_.patch(kPod, pod.key(), PatchType::strategic, patch, {.subresource = "status"});
    bool gone = !done && done.error().code() == Code::not_found;
    if (!done && done.error().code() == Code::conflict) {  // recreated, or changed concurrently
      auto live = client_.get(kPod, pod.key());
      gone = live ? (*live)->uid() != pod.uid() : live.error().code() == Code::not_found;
    }
    if (!done && !gone) return done.take_error().wrap("mark a pod that nobody runs");
    return {};
  }

  Result<void> collect_finished() {
    std::vector<ObjectPtr> finished = pods_.by_index("finished", "yes");
    if (finished.size() <= finished_max_) return {};
    std::sort(finished.begin(), finished.end(),
              [](const ObjectPtr& a, const ObjectPtr& b) { return order_of_going(*a) < order_of_going(*b); });
    for (size_t i = 0; i < finished.size() - finished_max_; ++i) {
      TRY(remove_now(*finished[i]));
    }
    return {};
  }

  // A pod that was already deleted with grace period 0 is only held by a finalizer and is skipped.
  Result<void> remove_now(const Object& pod) {
    if (pod.deleting() && view::Pod(pod).metadata().deletion_grace_period_seconds_or(-1) == 0) return {};
    auto removed = client_.remove(kPod, pod.key(), {.grace_period_seconds = 0, .uid = pod.uid()});
    bool gone = removed || removed.error().code() == Code::not_found || removed.error().code() == Code::conflict;
    if (!gone) return removed.take_error().wrap("remove pod " + pod.name());
    return {};
  }

  Client& client_;
  const Clock& clock_;
  const size_t finished_max_;
  Informer& pods_;
  Informer& nodes_;
};

}  // namespace

std::unique_ptr<Controller> make_pod_collector(const Context& context) { return std::make_unique<PodCollector>(context); }

}  // namespace coracle::controller

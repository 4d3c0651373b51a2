// SPDX-License-Identifier: Apache-2.0
// Taint eviction: a NoExecute taint on a node deletes its pods that do not tolerate it: at once, or after the shortest
// tolerationSeconds of the matching tolerations. The time is measured by the steady clock from when pod and taint were first seen
// together; it starts again when the daemon restarts. Removing the taint in time cancels the deletion.
//   node or pod changed ─▶ pods of that node ─▶ verdict_of (pure) ─▶ wait, or report and delete
// Source: Kubernetes "Taints and Tolerations: taint based evictions"; its taint-eviction-controller (semantics, texts).
#include "daemon/controller/pod/taint_eviction.h"

#include <algorithm>
#include <map>

#include "daemon/controller/controller.h"
#include "daemon/controller/shared/common.h"
#include "daemon/placement/placement.h"

namespace coracle::controller {
namespace {

class TaintEviction : public Controller {
 public:
  explicit TaintEviction(const Context& context)
      : client_(context.client),
        clock_(context.clock),
        nodes_(context.informers.of(kNode)),
        pods_(context.informers.of(kPod)),
        recorder_(context.events, "taint-eviction-controller") {}

  std::string_view name() const override { return "tainteviction"; }

  void subscribe(const Enqueue& enqueue) override {
    index_by_node(pods_);
    nodes_.on_change([=, this](const Informer::Change& change) {
      bool before = change.before && evicts(*change.before), after = change.after && evicts(*change.after);
      if (!before && !after) return;
      for (const ObjectPtr& pod : pods_.by_index("node", change.any().name())) enqueue.now(pod->key());
    });
    pods_.on_change([=, this](const Informer::Change& change) {
      if (!change.after) return enqueue.now(change.before->key());
      std::string node(view::Pod(*change.after).spec().node_name());
      ObjectPtr there = node.empty() ? nullptr : nodes_.get({"", node});
      if (there && evicts(*there)) enqueue.now(change.after->key());
    });
  }

  Result<Outcome> reconcile(const Key& key) override {
    ObjectPtr pod = pods_.get(key);
    ObjectPtr node = pod ? nodes_.get({"", std::string(view::Pod(*pod).spec().node_name())}) : nullptr;
    if (!pod || !node || pod->deleting()) {
      sentences_.with([&](auto& all) { all.erase(key); });
      return Outcome{};
    }
    auto grace = time_until_evicted(*pod, *node);
    if (!grace) {
      bool reprieved = sentences_.with([&](auto& all) { return all.erase(key) > 0; });
      if (reprieved) recorder_.normal(*pod, "TaintManagerEviction", "Cancelling deletion of Pod " + key.text());
      return Outcome{};
    }
    Sentence sentence = sentences_.with([&](auto& all) {
      Sentence& it = all[key];
      if (it.uid != pod->uid()) it = {pod->uid(), clock_.steady()};
      return it;
    });
    if (sentence.carried_out) return Outcome{};  // the cache does not show it yet
    std::chrono::nanoseconds left = sentence.since + *grace - clock_.steady();
    if (left.count() > 0) return Outcome{left};
    TRY(evict(*pod));
    sentences_.with([&](auto& all) { all[key].carried_out = true; });
    return Outcome{};
  }

 private:
  struct Sentence {
    std::string uid;  // of the pod to delete
    SteadyTime since{};
    bool carried_out = false;
  };

  static bool evicts(const Object& node) {
    view::Range<view::Taint> taints = view::Node(node).spec().taints();
    return std::any_of(taints.begin(), taints.end(), [](view::Taint taint) { return taint.effect() == "NoExecute"; });
  }

  Result<void> evict(const Object& pod) {
    json::value patch = {{"metadata", {{"uid", pod.uid()}}},
                         {"status",
                          {{"conditions", json::array{{{"type", "DisruptionTarget"},
                                                       {"status", "True"},
                                                       {"reason", "DeletionByTaintManager"},
                                                       {"message", "Taint manager: deleting due to NoExecute taint"},
                                                       {"lastTransitionTime", format_time(clock_.now())}}}}}}};
    recorder_.normal(pod, "TaintManagerEviction", "Marking for deletion Pod " + pod.key().text());
    auto marked = client_.patch(kPod, pod.key(), PatchType::strategic, patch, {.subresource = "status"});
    auto gone = [](const Error& error) { return error.code() == Code::not_found || error.code() == Code::conflict; };
    if (!marked && gone(marked.error())) return {};
    if (!marked) return marked.take_error().wrap("mark pod " + pod.name());
    auto removed = client_.remove(kPod, pod.key(), {.uid = pod.uid()});
    if (!removed && !gone(removed.error())) return removed.take_error().wrap("evict pod " + pod.name());
    return {};
  }

  Client& client_;
  const Clock& clock_;
  Informer& nodes_;
  Informer& pods_;
  EventRecorder recorder_;
  Guarded<std::map<Key, Sentence>> sentences_;
};

}  // namespace

std::optional<std::chrono::seconds> time_until_evicted(const Object& pod, const Object& node) {
  std::optional<std::chrono::seconds> shortest;  // nullopt: tolerated forever
  for (view::Taint taint : view::Node(node).spec().taints()) {
    if (taint.effect() != "NoExecute") continue;
    auto toleration = placement::toleration_of(view::Pod(pod), taint);
    if (!toleration) return std::chrono::seconds(0);
    if (!toleration->has_toleration_seconds()) continue;
    std::chrono::seconds span = bounded_seconds(std::max<int64_t>(toleration->toleration_seconds(), 0));
    shortest = shortest ? std::min(*shortest, span) : span;
  }
  return shortest;
}

std::unique_ptr<Controller> make_taint_eviction(const Context& context) { return std::make_unique<TaintEviction>(context); }

}  // namespace coracle::controller

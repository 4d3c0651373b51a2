// SPDX-License-Identifier: Apache-2.0
// Pod collector: pods that nobody else would ever take away. Those bound to a node that is no more, those being deleted
// that no node holds, and the oldest finished ones beyond a limit.
//   keys: {"node", name} a node's pods · {"finished", ""} the limit · {"pod/<namespace>", name} one pod
#include <algorithm>

#include "daemon/controller/common.h"
#include "daemon/controller/controller.h"

namespace coracle::controller {
namespace {

constexpr std::chrono::seconds kVanishedGrace{40};  // a node that re-registers keeps its pods

class PodCollector : public Controller {
 public:
  explicit PodCollector(const Context& context)
      : client_(context.client),
        clock_(context.clock),
        finished_max_(context.config.terminated_pods_max),
        pods_(context.informers.of(kPod)),
        nodes_(context.informers.of(kNode)) {}

  std::string_view name() const override { return "podcollector"; }

  void subscribe(const LookAt& look_at) override {
    index_by_node(pods_);
    pods_.add_index("finished", [](const Object& pod) {
      return pod_finished(view::Pod(pod)) ? std::vector<std::string>{"yes"} : std::vector<std::string>{};
    });
    nodes_.on_change([=](const Informer::Change& change) {
      if (!change.after) look_at.after({"node", change.before->name()}, kVanishedGrace);
    });
    pods_.on_change([=, this](const Informer::Change& change) {
      if (!change.after) return;
      const Object& pod = *change.after;
      std::string node(view::Pod(pod).spec().node_name());
      if (node.empty() && pod.deleting()) look_at.now({"pod/" + pod.ns(), pod.name()});
      if (!node.empty() && !nodes_.get({"", node})) look_at.after({"node", node}, kVanishedGrace);
      if (pod_finished(view::Pod(pod)) && pods_.by_index("finished", "yes").size() > finished_max_)
        look_at.now({"finished", ""});
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
      TRY(mark_failed(*pod));  // who holds it by a finalizer waits for its end
      TRY(remove_now(*pod));
    }
    return Outcome{};
  }

 private:
  Result<void> collect_orphans(const std::string& node) {
    if (nodes_.get({"", node})) return {};
    auto live = client_.get(kNode, {"", node});
    if (live) return {};
    if (live.error().code() != Code::not_found) return live.take_error();
    for (const ObjectPtr& pod : pods_.by_index("node", node)) {
      TRY(mark_failed(*pod, "PodGC: node no longer exists"));
      TRY(remove_now(*pod));
    }
    return {};
  }

  // `disruption`: what befell it, where nobody asked for its end.
  Result<void> mark_failed(const Object& pod, std::string_view disruption = {}) {
    if (pod_finished(view::Pod(pod))) return {};
    json::object status{{"phase", "Failed"}};
    if (!disruption.empty())
      status["conditions"] = json::array{{{"type", "DisruptionTarget"},
                                          {"status", "True"},
                                          {"reason", "DeletionByPodGC"},
                                          {"message", disruption},
                                          {"lastTransitionTime", format_time(clock_.now())}}};
    auto done = client_.patch(kPod, pod.key(), PatchType::strategic, {{"status", std::move(status)}}, {.subresource = "status"});
    if (!done && done.error().code() != Code::not_found) return done.take_error().wrap("mark a pod that nobody runs");
    return {};
  }

  Result<void> collect_finished() {
    std::vector<ObjectPtr> finished = pods_.by_index("finished", "yes");
    if (finished.size() <= finished_max_) return {};
    std::sort(finished.begin(), finished.end(), [](const ObjectPtr& a, const ObjectPtr& b) {
      return view::Pod(*a).metadata().creation_timestamp() < view::Pod(*b).metadata().creation_timestamp();
    });
    for (size_t i = 0; i < finished.size() - finished_max_; ++i) {
      TRY(remove_now(*finished[i]));
    }
    return {};
  }

  Result<void> remove_now(const Object& pod) {
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

std::unique_ptr<Controller> make_pod_collector(const Context& context) {
  return std::make_unique<PodCollector>(context);
}

}  // namespace coracle::controller

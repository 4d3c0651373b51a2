// SPDX-License-Identifier: Apache-2.0
// The loop around decide(): events update the board, decisions are written to the API. See scheduler.h.
#include "daemon/scheduler/scheduler.h"

#include <algorithm>
#include <set>
#include <thread>

#include "daemon/scheduler/cached_lister.h"
#include "daemon/scheduler/decide.h"
#include "daemon/scheduler/plugins/plugins.h"
#include "daemon/scheduler/queue.h"
#include "daemon/volume/match.h"
#include "runtime/base/guarded.h"
#include "runtime/base/log.h"
#include "runtime/base/text.h"
#include "runtime/base/thread.h"
#include "store/kinds/meta/conditions.h"
#include "store/kinds/pod/pod_state.h"

namespace coracle::scheduler {
namespace {

// A pod with a selected node that waits until its claims are bound.
struct Binding {
  PodInfoPtr pod;
  std::string node;
  SteadyTime deadline;
  std::map<std::string, bool> claims;  // the pod's claims, and whether each is bound
  size_t unbound = 0;                  // number of unbound claims
  bool ready = false;
  std::set<std::string> volumes;  // the existing volumes that its claims are to get
  std::string failure = {};       // why its claims will not be bound

  Binding(PodInfoPtr pod, std::string node, SteadyTime deadline, const std::vector<Write>& writes, const Lister& lister)
      : pod(std::move(pod)), node(std::move(node)), deadline(deadline) {
    for (const std::string& name : this->pod->claims)
      if (auto [claim, fresh] = claims.try_emplace(name, is_claim_bound({this->pod->key.ns, name}, lister)); fresh)
        unbound += !claim->second;
    for (const Write& write : writes)
      if (*write.kind == kPersistentVolume) volumes.insert(write.key.name);
  }
  bool is_decided() const { return ready || !failure.empty(); }
};

struct Board {
  explicit Board(const Configuration& configuration)
      : queue([first = configuration.profiles.front()](const PodInfo& a, const PodInfo& b) { return first->sorts_before(a, b); },
              configuration.backoff_first, configuration.backoff_longest) {}
  Cluster cluster;
  SchedulingQueue queue;
  Nominations nominations;
  std::map<Key, Binding> bindings;
  std::set<std::string> unsure;  // uids of pods that keep their place because they may be bound; they are retried soon
  size_t start = 0;              // index of the node with which the next decision begins

  std::optional<SteadyTime> next_due() const {
    auto due = queue.next_due();
    for (const auto& [key, binding] : bindings)
      if (!due || binding.deadline < *due) due = binding.deadline;
    return due;
  }
  bool has_work() const {
    return queue.has_active() || std::ranges::any_of(bindings, [](const auto& entry) { return entry.second.is_decided(); });
  }
  // Frees the pod's place. Returns the pod if it had one.
  PodInfoPtr remove_pod(const std::string& uid) {
    unsure.erase(uid);
    return cluster.remove_pod(uid);
  }
  // Removes the pod's nomination. Returns the pod and the node if there was one.
  std::pair<PodInfoPtr, std::string> denominate(const std::string& uid) {
    std::pair<PodInfoPtr, std::string> was;
    for (auto& [node, pods] : nominations)
      std::erase_if(pods, [&](const PodInfoPtr& pod) {
        if (pod->uid != uid) return false;
        was = {pod, node};
        return true;
      });
    std::erase_if(nominations, [](const auto& entry) { return entry.second.empty(); });
    return was;
  }
};

// Whether the fields that a decision depends on are equal; a status update alone does not require a new decision.
bool asks_the_same(const Object& a, const Object& b) {
  return same_json(view::Pod(a).spec().raw(), view::Pod(b).spec().raw()) && same_json(a.labels(), b.labels());
}

uint32_t what_changed(const ObjectPtr& before, const Object& after) {
  if (!before) return ClusterEvent::node_added;
  view::Node a(*before), b(after);
  uint32_t what = 0;
  if (!same_json(a.status().allocatable(), b.status().allocatable()) || !same_json(a.status().capacity(), b.status().capacity()))
    what |= ClusterEvent::node_allocatable;
  if (!same_json(before->labels(), after.labels())) what |= ClusterEvent::node_labels;
  if (!same_json(a.spec().raw(), b.spec().raw())) what |= ClusterEvent::node_taints;
  return what;
}

// Whether a failed request may have been executed anyway.
bool may_be_done(Code error) {
  switch (error) {
    case Code::internal:
    case Code::unavailable:
    case Code::timeout:
    case Code::cancelled: return true;
    default: return false;
  }
}

bool has_other_images(const Object& before, const Object& after) {
  auto was = view::Node(before).status().images(), is = view::Node(after).status().images();
  auto same = [](view::ContainerImage one, view::ContainerImage other) { return same_json(one.raw(), other.raw()); };
  return !std::equal(was.begin(), was.end(), is.begin(), is.end(), same);
}

uint32_t what_changed(const PodInfoPtr& before, const PodInfo& after) {
  if (!before) return ClusterEvent::pod_placed;
  uint32_t what = before->group == after.group ? 0u : uint32_t(ClusterEvent::pod_labels);
  const Amounts &a = before->requests.exact, &b = after.requests.exact;
  bool shrunk = b.cpu_milli < a.cpu_milli || b.memory < a.memory || b.ephemeral < a.ephemeral;
  for (const auto& [name, amount] : a.others()) shrunk |= b.get(name) < amount;
  return shrunk ? what | ClusterEvent::pod_shrunk : what;
}

}  // namespace

struct Scheduler::State {
  State(Client& client, Informers& informers, EventSink& events, Configuration configuration, const Clock& clock)
      : client(client),
        clock(clock),
        informers(informers),
        configuration(std::move(configuration)),
        pods(informers.of(kPod)),
        nodes(informers.of(kNode)),
        namespaces(informers.of(kNamespace)),
        lister(informers),
        events(events),
        board(this->configuration) {}

  Client& client;
  const Clock& clock;
  Informers& informers;
  const Configuration configuration;
  Informer& pods;
  Informer& nodes;
  Informer& namespaces;
  CachedLister lister;
  EventSink& events;
  Guarded<Board> board;
  std::jthread thread;

  // Null if the pod is for another scheduler.
  const Framework* framework_of(const Object& pod) const { return framework_named(view::Pod(pod).spec().scheduler_name()); }
  const Framework* framework_named(std::string_view name) const {
    for (const auto& one : configuration.profiles)
      if (one->scheduler_name() == (name.empty() ? kDefaultSchedulerName : name)) return one.get();
    return nullptr;
  }
  const Framework* framework_of(const PodInfo& pod) const { return framework_named(pod.scheduler_name); }
  bool waits_for_us(const Object& pod) const {
    return view::Pod(pod).spec().node_name().empty() && !pod.deleting() && !is_terminal(view::Pod(pod)) && framework_of(pod);
  }
  EventRecorder recorder(const Object& pod) const {
    const Framework* framework = framework_of(pod);
    return EventRecorder(events, framework ? framework->scheduler_name() : std::string(kDefaultSchedulerName));
  }

  // ---- events ----

  void subscribe() {
    pods.on_change([this](const Informer::Change& change) { on_pod(change); });
    nodes.on_change([this](const Informer::Change& change) { on_node(change); });
    namespaces.on_change([this](const Informer::Change& change) { on_namespace(change); });
    lister.claims.on_change([this](const Informer::Change& change) { on_claim(change); });
    lister.all_volumes.on_change([this](const Informer::Change& change) { on_volume(change); });
    lister.classes.on_change([this](const Informer::Change&) { on_other(ClusterEvent::classes); });
    lister.csi_drivers.on_change([this](const Informer::Change&) { on_other(ClusterEvent::csi_drivers); });
    lister.csi_nodes.on_change([this](const Informer::Change&) { on_other(ClusterEvent::csi_nodes); });
    lister.capacities.on_change([this](const Informer::Change& change) {
      if (change.after) on_other(ClusterEvent::capacities);  // less space helps nobody
    });
  }

  void on_pod(const Informer::Change& change) {
    change_board([&](Board& b) {
      const Object& pod = change.any();
      if (change.after && !view::Pod(pod).spec().node_name().empty() && !is_terminal(view::Pod(pod))) return on_placed(b, change);
      if (change.after && waits_for_us(pod)) return on_waiting(b, change);
      b.queue.remove(pod.key());
      b.bindings.erase(pod.key());
      PodInfoPtr nominated = b.denominate(pod.uid()).first, removed = b.remove_pod(pod.uid());
      if (!removed) removed = std::move(nominated);
      if (removed) wake(b, {.what = ClusterEvent::pod_removed, .pod = removed.get()});  // resources are free again
      if (!change.after) b.cluster.note_gone();
    });
  }

  void on_placed(Board& b, const Informer::Change& change) {
    const Object& pod = *change.after;
    std::string node(view::Pod(pod).spec().node_name());
    PodInfoPtr known = b.cluster.placed(pod.uid());
    b.queue.remove(pod.key());
    b.bindings.erase(pod.key());
    b.unsure.erase(pod.uid());
    drop_nomination(b, pod.uid(), node);
    PodInfoPtr now = b.cluster.read(pod);
    uint32_t what = what_changed(change.before && !view::Pod(*change.before).spec().node_name().empty() ? known : nullptr, *now);
    bool same = known && b.cluster.node_of(pod.uid()) == node && known->group == now->group && known->deleting == now->deleting &&
                known->started == now->started && known->priority == now->priority &&
                known->requests.exact == now->requests.exact;
    if (!same) b.cluster.place(now, node);
    if (what) wake(b, {.what = what, .pod = now.get()});
  }

  // Removes the pod's nomination, except on the node that it is placed on or nominated to.
  void drop_nomination(Board& b, const std::string& uid, std::string_view but_on = {}) {
    auto [nominated, kept_on] = b.denominate(uid);
    if (nominated && kept_on != but_on) wake(b, {.what = ClusterEvent::pod_removed, .pod = nominated.get()});
  }

  void on_waiting(Board& b, const Informer::Change& change) {
    const Object& pod = *change.after;
    if (b.cluster.placed(pod.uid())) return;  // it is being bound
    PodInfoPtr info = b.cluster.read(pod);
    std::string nominated(view::Pod(pod).status().nominated_node_name());
    drop_nomination(b, pod.uid(), nominated);
    if (!nominated.empty()) b.nominations[nominated].push_back(info);
    if (framework_of(pod)->pre_enqueue(*info).code != Answer::success) b.queue.remove(pod.key());
    else if (!change.before || !asks_the_same(*change.before, pod)) b.queue.add(std::move(info));
  }

  void on_node(const Informer::Change& change) {
    change_board([&](Board& b) {
      if (!change.after) {
        b.cluster.remove_node(change.before->name());
        return wake(b, {.what = ClusterEvent::node_removed});
      }
      uint32_t what = what_changed(change.before, *change.after);
      if (what || has_other_images(*change.before, *change.after)) b.cluster.put_node(change.after);
      if (what) wake(b, {.what = what, .node = b.cluster.node(change.after->name())});
    });
  }

  void on_namespace(const Informer::Change& change) {
    change_board([&](Board& b) {
      if (!change.after) return b.cluster.remove_namespace(change.before->name());
      b.cluster.put_namespace(change.after->name(), change.after->labels());
      if (!change.before || !same_json(change.before->labels(), change.after->labels()))
        wake(b, {.what = ClusterEvent::namespaces});
    });
  }

  void on_claim(const Informer::Change& change) {
    change_board([&](Board& b) {
      wake(b, {.what = ClusterEvent::claims});
      const Key key = change.any().key();
      for (auto& [pod, binding] : b.bindings) {
        auto claim = pod.ns == key.ns ? binding.claims.find(key.name) : binding.claims.end();
        if (claim == binding.claims.end()) continue;
        if (bool was = std::exchange(claim->second, is_claim_bound(key, lister)); was != claim->second)
          was ? ++binding.unbound : --binding.unbound;
        binding.ready |= binding.unbound == 0;
        if (takes_back_node(change, binding)) binding.failure = "provisioning failed for PVC " + quoted(key.name);
        else if (!change.after)
          binding.failure = "failed to check provisioning pvc: persistentvolumeclaim " + quoted(key.name) + " not found";
      }
    });
  }
  // Whether the provisioner has reported that it cannot create the claim's volume, by removing the selected node; or somebody has
  // written another one.
  static bool takes_back_node(const Informer::Change& change, const Binding& binding) {
    return change.before && change.after && change.before->annotation(volume::kSelectedNode) == binding.node &&
           change.after->annotation(volume::kSelectedNode) != binding.node;
  }

  // Source of the texts, and of those above: kube-scheduler's volume binder, checkBindings.
  void on_volume(const Informer::Change& change) {
    change_board([&](Board& b) {
      wake(b, {.what = ClusterEvent::volumes});
      const std::string name(change.any().name());
      auto has_claim = [](const ObjectPtr& volume) {
        return volume && !view::PersistentVolume(*volume).spec().claim_ref().uid().empty();
      };
      const bool is_reset = change.after && has_claim(change.before) && !has_claim(change.after);
      if (change.after && !is_reset) return;
      for (auto& [pod, binding] : b.bindings)
        if (binding.volumes.contains(name))
          binding.failure = is_reset ? "ClaimRef got reset for pv " + quoted(name)
                                     : "failed to check binding: persistentvolume " + quoted(name) + " not found";
    });
  }

  void on_other(ClusterEvent::What what) {
    change_board([&](Board& b) { wake(b, {.what = what}); });
  }

  void wake(Board& b, const ClusterEvent& event) {
    if (!b.queue.has_parked()) return;
    b.queue.wake(clock.steady(), [&](const PodInfo& pod, const PluginSet& refused) {
      const Framework* framework = framework_of(pod);
      return framework && framework->could_help(refused, event, pod, b.cluster);
    });
  }

  // Wakes the scheduler's thread only if the change gives it something to do.
  template <typename F>
  void change_board(F&& change) {
    bool matters = board.with([&](Board& b) {
      auto due = b.next_due();
      change(b);
      return b.has_work() || b.next_due() != due;
    });
    if (matters) board.notify();
  }

  // ---- scheduling ----

  void run(std::stop_token stop) {
    if (!informers.wait_synced(stop)) return;
    while (!stop.stop_requested()) {
      if (run_once()) continue;
      auto due = board.with([](Board& b) { return b.next_due(); });
      auto ready = [&](const Board& b) { return b.has_work() || (b.next_due() && b.next_due() != due); };
      auto nothing = [](Board&) {};
      if (due) board.wait_until(stop, std::chrono::steady_clock::now() + (*due - clock.steady()), ready, nothing);
      else board.wait(stop, ready, nothing);
    }
  }

  bool run_once() {
    if (finish_binding()) return true;
    auto popped = board.with([&](Board& b) { return b.queue.pop(clock.steady()); });
    if (!popped) return false;
    ObjectPtr pod = pods.get(popped->key);
    if (!pod || !waits_for_us(*pod)) {
      board.with([&](Board& b) { b.queue.remove(popped->key); });
      return true;
    }
    const Framework& framework = *framework_of(*pod);
    std::vector<PodInfoPtr> outranked;
    bool is_put_off = false;
    // The decision is made and recorded under one lock: the next decision must see it.
    auto [info, decision] = board.with([&](Board& b) {
      PodInfoPtr info = b.cluster.read(*pod);
      std::string was_on = b.cluster.node_of(info->uid);  // see give_up()
      PodInfoPtr was = b.remove_pod(info->uid);
      Decision decision = decide(framework, info, b.cluster, lister, b.nominations, b.start);
      if (was && decision.node != was_on) wake(b, {.what = ClusterEvent::pod_removed, .pod = was.get()});
      if (!decision.node.empty()) b.cluster.place(info, decision.node);
      else b.queue.park(info->key, decision.refused, clock.steady());
      // Recorded before the writes, because the event of the binding may arrive before they return.
      if (!decision.node.empty() && !decision.before_bind.empty())
        b.bindings.insert_or_assign(info->key, Binding(info, decision.node, clock.steady() + configuration.volumes_bound_within,
                                                       decision.before_bind, lister));
      is_put_off = !decision.post_filter.node.empty() && !b.unsure.empty();  // one of those places may become free
      if (is_put_off) decision.post_filter.victims.clear();
      if (!decision.post_filter.node.empty()) outranked = nominate(b, info, decision.post_filter.node);
      else if (decision.node.empty() && decision.post_filter.eligible) drop_nomination(b, info->uid);
      return std::pair(std::move(info), std::move(decision));
    });
    if (!decision.node.empty()) {
      prepare_and_bind(framework, *pod, info, decision);
    } else {
      bool all_go = true;
      for (const PodInfoPtr& victim : decision.post_filter.victims)
        all_go &= gives_way(*victim) || preempt(*pod, *victim, decision.post_filter.node);
      for (const PodInfoPtr& other : outranked) write_status(other->key, other->uid, {{"nominatedNodeName", nullptr}});
      bool told = tell_why(*pod, decision);
      if (!all_go || !told || is_put_off)  // no event would wake it
        board.with([&](Board& b) {
          b.queue.wake(clock.steady(), [&](const PodInfo& one, const PluginSet&) { return one.key == info->key; });
        });
    }
    return true;
  }

  // Nominates the pod to the node. Returns pods of lower priority that were nominated to it.
  std::vector<PodInfoPtr> nominate(Board& b, const PodInfoPtr& pod, const std::string& node) {
    drop_nomination(b, pod->uid, node);
    std::vector<PodInfoPtr> outranked;
    auto& pods = b.nominations[node];
    std::erase_if(pods, [&](const PodInfoPtr& other) {
      if (other->priority >= pod->priority) return false;
      outranked.push_back(other);
      return true;
    });
    pods.push_back(pod);
    return outranked;
  }

  void prepare_and_bind(const Framework& framework, const Object& pod, const PodInfoPtr& info, const Decision& decision) {
    if (decision.before_bind.empty()) return bind(framework, pod, *info, decision.node);
    for (const Write& write : decision.before_bind) {
      auto written = client.patch(*write.kind, write.key, PatchType::merge, write.patch, {.is_repeated = write.is_repeated});
      if (written) continue;
      board.with([&](Board& b) { b.bindings.erase(info->key); });
      return give_up(pod, *info, "binding volumes: " + written.error().text());
    }
  }

  // Handles one pod whose volumes are bound, or not bound in time.
  bool finish_binding() {
    std::optional<Binding> binding = board.with([&](Board& b) -> std::optional<Binding> {
      for (auto& [key, one] : b.bindings) {
        if (!one.is_decided() && one.deadline > clock.steady()) continue;
        Binding taken = std::move(one);
        b.bindings.erase(key);
        return taken;
      }
      return std::nullopt;
    });
    if (!binding) return false;
    ObjectPtr pod = pods.get(binding->pod->key);
    if (!pod || !waits_for_us(*pod)) return true;
    std::string elsewhere;  // a claim may have got another volume than the one that was planned
    bool has_node = board.with([&](Board& b) {
      const NodeInfo* node = b.cluster.node(binding->node);
      if (node && binding->ready) elsewhere = volume_elsewhere(*binding->pod, *node, lister);
      return node != nullptr;
    });
    if (!has_node) give_up(*pod, *binding->pod, "binding volumes: node " + quoted(binding->node) + " is gone");
    else if (!elsewhere.empty())
      give_up(*pod, *binding->pod,
              "binding volumes: pv " + quoted(elsewhere) + " node affinity doesn't match node " + quoted(binding->node) +
                  ": no matching NodeSelectorTerms");
    else if (binding->ready) bind(*framework_of(*pod), *pod, *binding->pod, binding->node);
    else if (!binding->failure.empty()) give_up(*pod, *binding->pod, "binding volumes: " + binding->failure);
    else give_up(*pod, *binding->pod, "binding volumes: timed out waiting for the condition");
    return true;
  }

  void bind(const Framework& framework, const Object& pod, const PodInfo& info, const std::string& node) {
    auto announce = [&] { recorder(pod).normal(pod, "Scheduled", "Successfully assigned " + info.key.text() + " to " + node); };
    auto bound = client.create_subresource(kPod, info.key, "binding", framework.binding(info, node));
    if (bound) return announce();
    Code code = bound.error().code();
    bool may_be_bound = code == Code::conflict;  // by an earlier attempt
    if (may_be_done(code)) {
      auto present = client.get(kPod, info.key);
      if (present && (*present)->uid() == info.uid && view::Pod(**present).spec().node_name() == node) return announce();
      may_be_bound = !present && present.error().code() != Code::not_found;
    }
    bool is_news = code != Code::not_found && code != Code::conflict;
    give_up(pod, info, is_news ? "binding rejected: " + bound.error().text() : "", may_be_bound);
  }

  // Retries the pod after its back-off. Its place is freed at once or, if it may be bound anyway, after the back-off. A deleted
  // pod is removed by its event.
  void give_up(const Object& pod, const PodInfo& info, const std::string& why, bool keeps_place = false) {
    board.with([&](Board& b) {
      PodInfoPtr removed = keeps_place ? nullptr : b.remove_pod(info.uid);
      if (keeps_place && b.cluster.placed(info.uid)) b.unsure.insert(info.uid);
      b.queue.fail(info.key, clock.steady());
      if (removed) wake(b, {.what = ClusterEvent::pod_removed, .pod = removed.get()});
    });
    if (why.empty()) return;
    log_warning("scheduler", why, {{"pod", info.key.text()}});
    recorder(pod).warning(pod, "FailedScheduling", why);
  }

  // A victim that waits for its volumes and is not bound yet is not deleted but scheduled again. Returns false for other pods.
  bool gives_way(const PodInfo& info) {
    bool waits_for_volumes = board.with([&](Board& b) { return b.bindings.erase(info.key) > 0; });
    if (!waits_for_volumes) return false;
    if (ObjectPtr pod = pods.get(info.key)) give_up(*pod, info, "binding volumes: a more important pod takes its place");
    return true;
  }

  // Returns false if the deletion request failed.
  bool preempt(const Object& preemptor, const PodInfo& victim, const std::string& node) {
    if (victim.deleting) return true;
    ObjectPtr pod = victim.object->awake();
    json::value condition = {
        {"type", "DisruptionTarget"},
        {"status", "True"},
        {"reason", "PreemptionByScheduler"},
        {"message", std::string(framework_of(preemptor)->scheduler_name()) + ": preempting to accommodate a higher priority pod"},
        {"observedGeneration", view::Pod(*pod).metadata().generation()},
        {"lastTransitionTime", format_time(clock.now())}};
    if (!write_status(victim.key, victim.uid, {{"conditions", json::array{std::move(condition)}}})) return false;
    DeleteOptions options;
    options.uid = victim.uid;
    auto removed = client.remove(kPod, victim.key, options);
    if (removed) recorder(preemptor).normal(*pod, "Preempted", "Preempted by pod " + preemptor.uid() + " on node " + node);
    if (removed || removed.error().code() == Code::not_found) return true;
    log_warning("scheduler", "preempt: " + removed.error().text(), {{"pod", victim.key.text()}});
    return false;
  }

  // Returns false if the status was not written, also if another pod has the name now; a deleted pod needs no status.
  bool write_status(const Key& key, const std::string& uid, json::value status) {
    json::value patch{{"metadata", {{"uid", uid}}}, {"status", std::move(status)}};
    auto written = client.patch(kPod, key, PatchType::strategic, patch, {.subresource = "status"});
    if (written || written.error().code() == Code::not_found) return true;
    log_warning("scheduler", "write status: " + written.error().text(), {{"pod", key.text()}});
    return false;
  }

  // Returns false if the status could not be written.
  bool tell_why(const Object& pod, const Decision& decision) {
    recorder(pod).warning(pod, "FailedScheduling", decision.message);
    std::string_view nominated = view::Pod(pod).status().nominated_node_name();
    bool renominated = !decision.post_filter.node.empty() && decision.post_filter.node != nominated;
    bool denominated = decision.post_filter.node.empty() && decision.post_filter.eligible && !nominated.empty();
    auto present = pod_condition(view::Pod(pod), "PodScheduled");
    bool told = present && present->reason() == "Unschedulable" && present->message() == decision.message;
    if (told && !renominated && !denominated) return true;
    bool was_false = present && present->status() == "False" && present->has_last_transition_time();
    json::value since = was_false ? json::value(present->last_transition_time()) : json::value(format_time(clock.now()));
    json::object status{{"conditions", json::array{{{"type", "PodScheduled"},
                                                    {"status", "False"},
                                                    {"reason", "Unschedulable"},
                                                    {"message", decision.message},
                                                    {"observedGeneration", view::Pod(pod).metadata().generation()},
                                                    {"lastTransitionTime", std::move(since)}}}}};
    if (renominated) status["nominatedNodeName"] = decision.post_filter.node;
    if (denominated) status["nominatedNodeName"] = nullptr;
    return write_status(pod.key(), pod.uid(), std::move(status));
  }

  // ---- explain ----

  json::value explain(const Object& pod) {
    const Framework* framework = framework_of(pod);
    std::string node(view::Pod(pod).spec().node_name());
    bool ours = framework != nullptr;
    if (!framework) framework = configuration.profiles.front().get();
    return board.with([&](Board& b) {
      PodInfoPtr info = b.cluster.read(pod);
      Verdict gated = framework->pre_enqueue(*info);
      json::object out = scheduler::explain(*framework, info, b.cluster, lister, b.nominations);
      auto standing = b.queue.standing(info->key);
      std::string_view state = standing.state.empty() ? "new" : standing.state;
      if (is_terminal(view::Pod(pod))) state = "finished";
      else if (!node.empty()) state = "scheduled";
      else if (!ours) state = "not ours";
      else if (gated.code != Answer::success) state = "gated";
      else if (b.bindings.contains(info->key)) state = "binding volumes";
      if (node.empty() && gated.code != Answer::success) {
        out["message"] = gated.reasons.front().text;
        out["missing"] = json::array{json::string(gated.reasons.front().text)};
        out["cures"] = json::array{json::string(gated.reasons.front().cure)};
      }
      out["pod"] = info->key.text();
      out["scheduler"] = ours ? json::string(framework->scheduler_name()) : json::string(view::Pod(pod).spec().scheduler_name());
      out["state"] = state;
      out["node"] = node;
      out["nominatedNode"] = view::Pod(pod).status().nominated_node_name();
      out["attempts"] = standing.attempts;
      return json::value(std::move(out));
    });
  }
};

Scheduler::Scheduler(Client& client, Informers& informers, EventSink& events, Configuration configuration, const Clock& clock)
    : state_(std::make_unique<State>(client, informers, events, std::move(configuration), clock)) {
  state_->subscribe();
}

Scheduler::~Scheduler() {
  state_->thread = {};       // stops and joins the thread
  state_->informers.stop();  // because they call the scheduler's handlers
}

void Scheduler::start() {
  state_->thread = start_thread("scheduler", [state = state_.get()](std::stop_token stop) { state->run(stop); });
}

json::value Scheduler::explain(const Object& pod) const { return state_->explain(pod); }

bool Scheduler::run_once() { return state_->run_once(); }

}  // namespace coracle::scheduler

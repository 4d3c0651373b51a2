// SPDX-License-Identifier: Apache-2.0
// The plan of a DaemonSet. See daemon_set.h. All functions are pure.
#include <algorithm>
#include <map>

#include "daemon/controller/workload/daemon_set.h"
#include "daemon/controller/workload/history.h"
#include "daemon/controller/workload/pod_control.h"
#include "daemon/placement/placement.h"

namespace coracle::controller {
namespace {

constexpr std::string_view kGenerationAnnotation = "deprecated.daemonset.template.generation",
                           kGenerationLabel = "pod-template-generation";
constexpr std::string_view kNodeNameField = "metadata.name";

// ---- the pod ----

// Adds a toleration, so that the pod stays in spite of the node's condition. It replaces the template's toleration of that taint.
void tolerate(json::object& spec, std::string_view taint, std::string_view effect) {
  json::value& tolerations = spec["tolerations"];
  if (!tolerations.is_array()) tolerations.emplace_array();
  json::value wanted{{"key", taint}, {"operator", "Exists"}, {"effect", effect}};
  for (json::value& present : tolerations.get_array()) {
    view::Toleration before(present);
    bool same = before.key() == taint && before.effect() == effect && before.operator_() == "Exists" && before.value().empty();
    if (!same) continue;
    present = std::move(wanted);
    return;
  }
  tolerations.get_array().push_back(std::move(wanted));
}

// The part of a pod that is the same for all nodes.
json::value pod_anywhere(const Object& set) {
  json::value pod = pod_from_template(set, view::DaemonSet(set).spec().template_().raw());
  json::object& spec = make_object(pod, "spec");
  tolerate(spec, "node.kubernetes.io/not-ready", "NoExecute");
  tolerate(spec, "node.kubernetes.io/unreachable", "NoExecute");
  for (std::string_view taint : {"node.kubernetes.io/disk-pressure", "node.kubernetes.io/memory-pressure",
                                 "node.kubernetes.io/pid-pressure", "node.kubernetes.io/unschedulable"})
    tolerate(spec, taint, "NoSchedule");
  if (view::Pod(pod).spec().host_network()) tolerate(spec, "node.kubernetes.io/network-unavailable", "NoSchedule");
  return pod;
}

// The node that a pod is bound to or is meant for.
std::string_view node_of(view::Pod pod) {
  if (std::string_view bound = pod.spec().node_name(); !bound.empty()) return bound;
  view::NodeAffinity affinity = pod.spec().affinity().node_affinity();
  for (view::NodeSelectorTerm term : affinity.required_during_scheduling_ignored_during_execution().node_selector_terms())
    for (view::NodeSelectorRequirement field : term.match_fields())
      if (field.key() == kNodeNameField && field.operator_() == "In" && field.values().size() == 1) return field.values()[0];
  return {};
}

NodeFit fit_of(view::Pod pod, const Object& node) {
  std::string_view bound = pod.spec().node_name();
  if ((!bound.empty() && bound != node.name()) || !placement::node_wanted(pod, node)) return {};
  NodeFit out{true, true};
  for (view::Taint taint : view::Node(node).spec().taints()) {
    if ((taint.effect() != "NoSchedule" && taint.effect() != "NoExecute") || placement::tolerates(pod, taint)) continue;
    out.should_run = false;
    out.should_continue &= taint.effect() != "NoExecute";
  }
  return out;
}

// Whether the pod is of the current revision. Kubernetes also accepts a pod with the set's generation and any hash. But a set
// that was recreated over orphaned pods starts at generation 1 too, and would not update them.
bool of_revision(const Object& set, const std::string& hash, const Object& pod) {
  if (std::string_view own = pod.label(kRevisionLabel); !own.empty()) return own == hash;
  std::string_view generation = set.annotation(kGenerationAnnotation);
  return !generation.empty() && pod.label(kGenerationLabel) == generation;
}

// The pod that is kept on its node comes first: bound pods, then the oldest.
bool counts_before(const ObjectPtr& a, const ObjectPtr& b) {
  auto key = [](const Object& pod) {
    return std::tuple(view::Pod(pod).spec().node_name().empty(), view::Pod(pod).metadata().creation_timestamp(),
                      std::string_view(pod.name()));
  };
  return key(*a) < key(*b);
}

// ---- the plan ----

class DaemonSetPlanner {
 public:
  DaemonSetPlanner(const ObservedDaemonSet& observed, WallTime now)
      : observed_(observed), set_(*observed.set), now_(now), min_ready_(view::DaemonSet(set_).spec().min_ready_seconds()) {
    json::value pod = pod_anywhere(set_);
    for (const ObjectPtr& node : observed.nodes) {
      Place& place = places_[node->name()];
      place.there = true;
      place.fit = fit_of(view::Pod(pod), *node);
      desired_ += place.fit.should_run;
    }
    for (const ObjectPtr& each : observed.pods) {
      std::string name(node_of(view::Pod(*each)));
      bool ended = is_terminal(view::Pod(*each)) && leaving(*each);  // it no longer blocks the node
      if (!name.empty() && !ended) places_[name].pods.push_back(each);
    }
    for (auto& [name, place] : places_) std::sort(place.pods.begin(), place.pods.end(), counts_before);
    view::DaemonSetUpdateStrategy strategy = view::DaemonSet(set_).spec().update_strategy();
    rolls_ = strategy.type() == "RollingUpdate" && strategy.has_rolling_update();
    if (!rolls_) return;
    max_unavailable_ = scaled(strategy.rolling_update().max_unavailable(), desired_, true);
    max_surge_ = scaled(strategy.rolling_update().max_surge(), desired_, true);
    if (max_unavailable_ == 0 && max_surge_ == 0) max_unavailable_ = 1;  // otherwise an update could never proceed
  }

  DaemonSetPlan plan() {
    for (const auto& [name, place] : places_) keep(name, place);
    bool settled = plan_.create.empty() && plan_.remove.empty();
    if (settled && rolls_) max_surge_ > 0 ? surge() : replace();
    if (plan_.create.size() > kDaemonSetBurst) plan_.create.resize(kDaemonSetBurst);
    if (plan_.remove.size() > kDaemonSetBurst) plan_.remove.resize(kDaemonSetBurst);
    plan_.status = status();
    look_again(next_available(observed_.pods, min_ready_, now_));
    return std::move(plan_);
  }

 private:
  struct Place {
    bool there = false;  // the node exists
    NodeFit fit;
    std::vector<ObjectPtr> pods;
  };
  struct Pair {
    ObjectPtr updated, old;  // the pod to keep of each revision
    bool one_of_each = true;
  };

  bool leaving(const Object& pod) const { return pod.deleting() || observed_.removed.contains(pod.uid()); }
  bool available(const Object& pod) const { return pod_available(view::Pod(pod), min_ready_, now_); }
  bool updated(const Object& pod) const { return of_revision(set_, observed_.hash, pod); }
  void remove(const ObjectPtr& pod) { plan_.remove.push_back({pod, "", "", ""}); }
  void look_again(std::optional<std::chrono::nanoseconds> in) {
    if (in && (!plan_.again || *in < *plan_.again)) plan_.again = in;
  }

  // ---- one pod per node ----

  void keep(const std::string& node, const Place& place) {
    if (!place.there) return remove_unbound(place);
    if (place.fit.should_run && place.pods.empty()) return plan_.create.push_back(node);
    if (!place.fit.should_continue) return remove_all(place);
    std::vector<ObjectPtr> running;
    bool waits = false;
    for (const ObjectPtr& pod : place.pods) {
      if (leaving(*pod)) continue;
      if (is_terminal(view::Pod(*pod))) waits |= !remove_ended(node, pod);
      else running.push_back(pod);
    }
    if (max_surge_ > 0) return keep_surging(node, place, running, waits);
    for (size_t i = 1; i < running.size(); ++i) remove(running[i]);  // keeps the oldest
  }

  // Deletes pods that are bound to no node and that nothing else would delete.
  void remove_unbound(const Place& place) {
    for (const ObjectPtr& pod : place.pods)
      if (!leaving(*pod) && view::Pod(*pod).spec().node_name().empty()) remove(pod);
  }

  void remove_all(const Place& place) {
    for (const ObjectPtr& pod : place.pods)
      if (!leaving(*pod)) remove(pod);
  }

  // False: it stays until its back-off is over.
  bool remove_ended(const std::string& node, const ObjectPtr& pod) {
    bool failed = view::Pod(*pod).status().phase() == "Failed";
    if (failed)
      if (auto wait = observed_.backing_off(node)) return look_again(wait), false;
    std::string message = std::string("Found ") + (failed ? "failed" : "succeeded") + " daemon pod " + pod->key().text() +
                          " on node " + node + ", will try to " + (failed ? "kill it" : "delete it");
    plan_.remove.push_back({pod, failed ? node : "", failed ? "FailedDaemonPod" : "SucceededDaemonPod", std::move(message)});
    return true;
  }

  // Two pods may exist while the new one is not available and the old one is ready.
  void keep_surging(const std::string& node, const Place& place, const std::vector<ObjectPtr>& running, bool waits) {
    if (running.empty() && place.fit.should_run && !waits) return plan_.create.push_back(node);
    if (running.size() <= 1) return;
    ObjectPtr oldest_updated, oldest_old;
    for (const ObjectPtr& pod : running) {
      ObjectPtr& oldest = updated(*pod) ? oldest_updated : oldest_old;
      if (oldest) remove(pod);
      else oldest = pod;
    }
    if (!oldest_updated || !oldest_old) return;
    if (!is_ready(view::Pod(*oldest_old)) || available(*oldest_updated)) remove(oldest_old);
  }

  // ---- update ----

  Pair pair_of(const Place& place) const {
    Pair pair;
    for (const ObjectPtr& pod : place.pods) {
      if (leaving(*pod)) continue;
      ObjectPtr& one = updated(*pod) ? pair.updated : pair.old;
      pair.one_of_each &= !one;
      one = pod;
    }
    return pair;
  }
  // The nodes of an update: those with a pod, and those that should have one.
  static bool concerned(const Place& place) { return place.fit.should_run || !place.pods.empty(); }

  // Deletes old pods; their replacements are created because they are missing. Pods that are not available are deleted without
  // using maxUnavailable.
  void replace() {
    int64_t unavailable = 0;
    std::vector<ObjectPtr> candidates;
    for (const auto& [name, place] : places_) {
      if (!concerned(place)) continue;
      Pair pair = pair_of(place);
      if (!pair.one_of_each || bool(pair.updated) == bool(pair.old)) {
        ++unavailable;
      } else if (pair.updated) {
        unavailable += !available(*pair.updated);
      } else if (available(*pair.old)) {
        candidates.push_back(pair.old);
      } else {
        ++unavailable;
        remove(pair.old);
      }
    }
    for (const ObjectPtr& pod : candidates)
      if (unavailable++ < max_unavailable_) remove(pod);
  }

  // Creates a new pod beside the old one, which is deleted when the new one is available.
  void surge() {
    int64_t surging = 0, available_nodes = 0;
    std::vector<std::string> candidates;
    std::vector<ObjectPtr> misplaced;
    for (const auto& [name, place] : places_) {
      if (!concerned(place)) continue;
      Pair pair = pair_of(place);
      if (!pair.one_of_each) {
        ++surging;
        continue;
      }
      if (pair.old || pair.updated) available_nodes += available(pair.old ? *pair.old : *pair.updated);
      if (!pair.old) continue;
      if (pair.updated) {
        if (available(*pair.updated)) remove(pair.old);
        else ++surging;
      } else if (!place.fit.should_run) {
        if (available(*pair.old)) misplaced.push_back(pair.old);
        else remove(pair.old);
      } else if (available(*pair.old)) {
        candidates.push_back(name);
      } else {
        plan_.create.push_back(name);  // no available pod is replaced
      }
    }
    // A node that should no longer run a pod keeps it until another node compensates for it.
    for (size_t i = 0; i < misplaced.size() && int64_t(i) < available_nodes - desired_; ++i) remove(misplaced[i]);
    for (const std::string& name : candidates)
      if (surging++ < max_surge_) plan_.create.push_back(name);
  }

  // ---- status ----

  json::value status() const {
    int64_t current = 0, misplaced = 0, ready = 0, available_pods = 0, updated_pods = 0;
    for (const auto& [name, place] : places_) {
      if (!place.there || place.pods.empty()) continue;
      if (!place.fit.should_run) {
        ++misplaced;
        continue;
      }
      ++current;
      const Object& pod = *place.pods.front();
      ready += is_ready(view::Pod(pod));
      available_pods += available(pod);
      updated_pods += updated(pod);
    }
    json::object status = view::DaemonSet(set_).status().members();
    status["currentNumberScheduled"] = current;
    status["numberMisscheduled"] = misplaced;
    status["desiredNumberScheduled"] = desired_;
    status["numberReady"] = ready;
    status["observedGeneration"] = view::DaemonSet(set_).metadata().generation();
    set_count(status, "updatedNumberScheduled", updated_pods);
    set_count(status, "numberAvailable", available_pods);
    set_count(status, "numberUnavailable", desired_ - available_pods);
    set_count(status, "collisionCount", observed_.collisions);
    return status;
  }

  const ObservedDaemonSet& observed_;
  const Object& set_;
  const WallTime now_;
  const std::chrono::seconds min_ready_;
  std::map<std::string, Place> places_;  // by node name
  int64_t desired_ = 0, max_unavailable_ = 0, max_surge_ = 0;
  bool rolls_ = false;
  DaemonSetPlan plan_;
};

}  // namespace

DaemonSetPlan plan_daemon_set(const ObservedDaemonSet& observed, WallTime now) { return DaemonSetPlanner(observed, now).plan(); }

json::value daemon_pod(const Object& set, const std::string& hash, const std::string& node) {
  json::value pod = pod_anywhere(set);
  json::object& labels = make_object(pod, "metadata.labels");
  labels[kRevisionLabel] = hash;
  if (std::string_view generation = set.annotation(kGenerationAnnotation); !generation.empty())
    labels[kGenerationLabel] = generation;
  // Added to all terms of the template, so the node must match as well.
  json::value field{{"key", kNodeNameField}, {"operator", "In"}, {"values", json::array{node}}};
  make_object(pod, "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution")["nodeSelectorTerms"] =
      json::array{json::object{{"matchFields", json::array{std::move(field)}}}};
  return pod;
}

NodeFit fit(const Object& set, const Object& node) {
  json::value pod = pod_anywhere(set);
  return fit_of(view::Pod(pod), node);
}

}  // namespace coracle::controller

// SPDX-License-Identifier: Apache-2.0
// HorizontalPodAutoscalers: the size of a workload only changes within minReplicas and maxReplicas and not faster than the
// policies allow, for some state of the autoscaler that the daemon may still assume; a size of 0 is left alone. At rest, the size
// is the result of the formula within these limits, and the conditions are accordingly.
// The record of earlier changes is lost with the daemon; a change whose response was lost is not in it.
// Source: Kubernetes "Horizontal Pod Autoscaling": algorithm details, configurable scaling behavior.
#include <algorithm>
#include <cmath>
#include <set>

#include "store/object/quantity.h"
#include "store/object/selector.h"
#include "tests/simulation/cluster_state.h"

namespace coracle::simulation {
namespace {

using std::chrono::seconds;

const Kind* const kScaled[] = {&kDeployment, &kReplicaSet, &kReplicationController, &kStatefulSet};

int64_t milli(const json::value* quantity) {
  auto amount = quantity ? Quantity::from_json(*quantity) : Result<Quantity>(Error(Code::not_found, ""));
  return amount ? amount->milli_value() : -1;
}

int64_t replicas(const Object& object) { return get_int(object.json(), "spec.replicas", 1); }
int64_t least(const Object& autoscaler) { return get_int(autoscaler.json(), "spec.minReplicas", 1); }
int64_t most(const Object& autoscaler) { return get_int(autoscaler.json(), "spec.maxReplicas"); }

bool scales(const Object& autoscaler, const Kind& kind, const std::string& name) {
  return get_string(autoscaler.json(), "spec.scaleTargetRef.kind") == kind.kind &&
         get_string(autoscaler.json(), "spec.scaleTargetRef.name") == name;
}

// ---- the formula, implemented directly ----

class Formula {
 public:
  Formula(const ClusterState& cluster_state, const Object& autoscaler, const Object& target)
      : autoscaler_(autoscaler), current_(replicas(target)) {
    const json::value* selector = find(target.json(), "spec.selector");
    LabelSelector selects = target.kind() == kReplicationController
                                ? LabelSelector::from_map(get_object(target.json(), "spec.selector"))
                                : MUST(LabelSelector::from_json(selector));
    for (const ObjectPtr& pod : cluster_state.all(kPod, target.ns()))
      if (selects.matches(*pod)) pods_.push_back(pod);
    for (const ObjectPtr& measured : cluster_state.pod_metrics())
      if (measured->ns() == target.ns()) measured_[measured->name()] = measured;
  }

  // The largest result of all metrics. If one metric is missing, the others may only scale up.
  std::optional<int64_t> asks() const {
    std::optional<int64_t> most;
    bool all = true;
    for (const json::value& metric : get_array(autoscaler_.json(), "spec.metrics")) {
      auto one = asks(metric);
      if (one) most = std::max(most.value_or(0), *one);
      else all = false;
    }
    return most && (all || *most >= current_) ? most : std::nullopt;
  }

 private:
  std::optional<int64_t> asks(const json::value& metric) const {
    const json::value* source = find(metric, get_string(metric, "type") == "Resource" ? "resource" : "containerResource");
    std::string resource(get_string(*source, "name")), container(get_string(*source, "container"));
    const json::value* percent = find(*source, "target.averageUtilization");
    int64_t target = percent ? percent->to_number<int64_t>() : milli(find(*source, "target.averageValue"));
    struct Use {
      int64_t used, requested;
    };
    std::vector<Use> seen;
    std::vector<int64_t> unready, missing;  // what they request
    for (const ObjectPtr& pod : pods_) {
      auto asked = percent ? request(*pod, resource, container) : 0;
      if (!asked) return std::nullopt;
      std::string_view phase = get_string(pod->json(), "status.phase");
      auto metrics = measured_.find(pod->name());
      std::optional<int64_t> used;
      if (metrics != measured_.end()) {
        used = use(*metrics->second, resource, container);
        if (!used) return std::nullopt;
      }
      if (pod->deleting() || phase == "Failed") continue;
      if (phase == "Pending" || phase.empty()) unready.push_back(*asked);
      else if (!used) missing.push_back(*asked);
      else if (resource == "cpu" && never_ready(*pod)) unready.push_back(*asked);
      else seen.push_back({*used, *asked});
    }
    if (seen.empty()) return std::nullopt;
    auto ratio = [&](const std::vector<Use>& of) {  // in whole percents and thousandths, as they are reported
      int64_t used = 0, requested = 0;
      for (const Use& use : of) used += use.used, requested += use.requested;
      if (percent && requested == 0) return -1.0;
      return double(percent ? used * 100 / requested : used / int64_t(of.size())) / double(target);
    };
    double first = ratio(seen);
    if (first < 0) return std::nullopt;
    std::vector<Use> counted = seen;
    for (int64_t asked : missing)
      if (first != 1) counted.push_back({first > 1 ? 0 : percent ? asked * std::max<int64_t>(100, target) / 100 : target, asked});
    if (first > 1)
      for (int64_t asked : unready) counted.push_back({0, asked});
    double then = ratio(counted);
    if (within_tolerance(then) || (first > 1 && then < 1) || (first < 1 && then > 1)) return current_;
    auto wanted = int64_t(std::ceil(then * double(counted.size())));
    bool guessed = counted.size() > seen.size();
    if (guessed && ((then > 1 && wanted < current_) || (then < 1 && wanted > current_))) return current_;
    return wanted;
  }

  bool within_tolerance(double ratio) const {
    auto tolerance = [&](const char* direction) {
      const json::value* given = find(autoscaler_.json(), std::string("spec.behavior.") + direction + ".tolerance");
      return given ? double(milli(given)) / 1000 : 0.1;
    };
    return 1 - tolerance("scaleDown") <= ratio && ratio <= 1 + tolerance("scaleUp");
  }

  // It started long ago, since all is at rest, and has never been ready.
  static bool never_ready(const Object& pod) {
    auto started = parse_time(get_string(pod.json(), "status.startTime"));
    for (const json::value& condition : get_array(pod.json(), "status.conditions"))
      if (get_string(condition, "type") == "Ready" && get_string(condition, "status") != "True") {
        auto changed = parse_time(get_string(condition, "lastTransitionTime"));
        return started && changed && *changed < *started + seconds(30);
      }
    return false;
  }

  static std::optional<int64_t> use(const Object& measured, const std::string& resource, const std::string& container) {
    int64_t sum = 0;
    bool found = false;
    for (const json::value& one : get_array(measured.json(), "containers"))
      if (container.empty() || get_string(one, "name") == container)
        found = true, sum += milli(find_keys(one, {"usage", resource}));
    return found ? std::optional(sum) : std::nullopt;
  }

  static std::optional<int64_t> request(const Object& pod, const std::string& resource, const std::string& container) {
    int64_t sum = 0;
    bool found = false;
    for (const json::value& one : get_array(pod.json(), "spec.containers")) {
      if (!container.empty() && get_string(one, "name") != container) continue;
      const json::value* asked = find_keys(one, {"resources", "requests", resource});
      if (!asked) return std::nullopt;
      found = true, sum += milli(asked);
    }
    return found ? std::optional(sum) : std::nullopt;
  }

  const Object& autoscaler_;
  int64_t current_;
  std::vector<ObjectPtr> pods_;
  std::map<std::string, ObjectPtr> measured_;
};

// ---- the speed of scaling ----

struct Scaling {
  SteadyTime at;
  int64_t by;
  Revision revision;
  bool surely_its_own;  // no other autoscaler can have done it
};

class AutoscalersRule : public Rule {
 public:
  void after(const ClusterState& cluster_state, Actor actor, const Change& change) override {
    if (std::exchange(daemons_, cluster_state.daemons()) != cluster_state.daemons()) past_.clear();
    bool scaled = std::any_of(std::begin(kScaled), std::end(kScaled), [&](const Kind* kind) { return *kind == *change.kind; });
    if (actor != Actor::daemon || !scaled || !change.before || !change.after ||
        replicas(*change.before) == replicas(*change.after))
      return;
    if (change.before->controller()) return;  // a ReplicaSet of a Deployment
    std::vector<ObjectPtr> autoscalers = cluster_state.believable_in(kHorizontalPodAutoscaler, change.after->ns());
    std::erase_if(autoscalers, [&](const ObjectPtr& each) { return !scales(*each, *change.kind, change.after->name()); });
    int64_t from = replicas(*change.before), to = replicas(*change.after);
    std::string name =
        "autoscalers: " + describe(*change.after) + " from " + std::to_string(from) + " to " + std::to_string(to) + ": ";
    if (autoscalers.empty()) return cluster_state.violated(name + "there is none for it");
    std::string why;
    bool allowed = std::any_of(autoscalers.begin(), autoscalers.end(), [&](const ObjectPtr& each) {
      std::string objection = this->objection(cluster_state, *each, from, to);
      if (why.empty()) why = objection;
      return objection.empty();
    });
    if (!allowed) cluster_state.violated(name + why);
    std::set<std::string> uids;
    for (const ObjectPtr& each : autoscalers) uids.insert(each->uid());
    for (const std::string& uid : uids)
      past_[uid].push_back({cluster_state.clock.steady(), to - from, change.revision, uids.size() == 1});
  }

  void at_rest(const ClusterState& cluster_state) override {
    for (const ObjectPtr& autoscaler : cluster_state.all(kHorizontalPodAutoscaler)) {
      std::string problem = problem_at_rest(cluster_state, *autoscaler);
      if (!problem.empty()) return cluster_state.violated("autoscalers: " + describe(*autoscaler) + ": " + problem);
    }
  }

 private:
  // Why the change is not allowed; empty: it is allowed.
  std::string objection(const ClusterState& cluster_state, const Object& autoscaler, int64_t from, int64_t to) const {
    if (from == 0) return "it is switched off";
    if (to < least(autoscaler) || to > most(autoscaler))
      return "not within " + std::to_string(least(autoscaler)) + " to " + std::to_string(most(autoscaler));
    if (from > most(autoscaler)) return to == most(autoscaler) ? "" : "beyond the most, it becomes the most";
    if (from < least(autoscaler)) return to == least(autoscaler) ? "" : "below the least, it becomes the least";
    int64_t limit = this->limit(cluster_state, autoscaler, from, to > from);
    if (to > from ? to > limit : to < limit) return "too fast, to " + std::to_string(limit) + " at most";
    return "";
  }

  int64_t limit(const ClusterState& cluster_state, const Object& autoscaler, int64_t from, bool up) const {
    const json::value* rules = find(autoscaler.json(), std::string("spec.behavior.") + (up ? "scaleUp" : "scaleDown"));
    if (!rules) return up ? std::max<int64_t>(2 * from, 4) : 0;
    std::string_view select = get_string(*rules, "selectPolicy");
    if (select == "Disabled") return from;
    std::optional<int64_t> limit;
    for (const json::value& policy : get_array(*rules, "policies")) {
      // The size at the beginning of the period, or the most permissive value that it may have had.
      int64_t began = from - changed(cluster_state, autoscaler, seconds(get_int(policy, "periodSeconds")), up),
              value = get_int(policy, "value");
      bool percent = get_string(policy, "type") == "Percent";
      double share = double(began) * (1 + (up ? 1 : -1) * double(value) / 100);
      int64_t one = percent ? int64_t(up ? std::ceil(share) : std::floor(share)) : began + (up ? value : -value);
      if (!limit) limit = one;
      else limit = (select == "Min") == up ? std::min(*limit, one) : std::max(*limit, one);
    }
    return up ? std::max(limit.value_or(from), from) : std::min(limit.value_or(from), from);
  }

  // The change of size within the period: all that it must remember; of what it may have forgotten, the choice that permits more.
  int64_t changed(const ClusterState& cluster_state, const Object& autoscaler, seconds period, bool up) const {
    auto past = past_.find(autoscaler.uid());
    if (past == past_.end()) return 0;
    int64_t sum = 0;
    for (const Scaling& scaling : past->second) {
      bool certain = scaling.surely_its_own && cluster_state.daemon_heard_of(scaling.revision);
      if (scaling.at > cluster_state.clock.steady() - period && (certain || (scaling.by > 0) != up)) sum += scaling.by;
    }
    return sum;
  }

  static std::string condition(const Object& autoscaler, std::string_view type) {
    for (const json::value& one : get_array(autoscaler.json(), "status.conditions"))
      if (get_string(one, "type") == type)
        return std::string(get_string(one, "status")) + "/" + std::string(get_string(one, "reason"));
    return "";
  }

  static std::string problem_at_rest(const ClusterState& cluster_state, const Object& autoscaler) {
    ObjectPtr target;
    for (const Kind* kind : kScaled)
      if (scales(autoscaler, *kind, std::string(get_string(autoscaler.json(), "spec.scaleTargetRef.name"))))
        target =
            cluster_state.find(*kind, {autoscaler.ns(), std::string(get_string(autoscaler.json(), "spec.scaleTargetRef.name"))});
    std::string able = condition(autoscaler, "AbleToScale"), active = condition(autoscaler, "ScalingActive"),
                limited = condition(autoscaler, "ScalingLimited");
    if (get_int(autoscaler.json(), "status.observedGeneration") != get_int(autoscaler.json(), "metadata.generation"))
      return "has not observed its generation";
    if (!target) return able == "False/FailedGetScale" ? "" : "has no target, and says " + able;
    if (!able.starts_with("True/")) return "is not able to scale: " + able;
    int64_t current = replicas(*target), desired = get_int(autoscaler.json(), "status.desiredReplicas");
    if (get_int(autoscaler.json(), "status.currentReplicas") != current)
      return "does not say that there are " + std::to_string(current);
    if (current == 0)
      return active == "False/ScalingDisabled" && desired == 0
                 ? ""
                 : "is switched off, and says " + active + " and wants " + std::to_string(desired);
    int64_t low = least(autoscaler), high = most(autoscaler);
    if (current < low || current > high)
      return std::to_string(current) + " are not within " + std::to_string(low) + " to " + std::to_string(high);
    std::optional<int64_t> asked = Formula(cluster_state, autoscaler, *target).asks();
    if (!asked) return active.starts_with("False/FailedGet") ? "" : "cannot know, and says " + active;
    if (active != "True/ValidMetricFound") return "could know, and says " + active;
    bool held = *asked != current &&
                get_string(autoscaler.json(), std::string("spec.behavior.") + (*asked > current ? "scaleUp" : "scaleDown") +
                                                  ".selectPolicy") == "Disabled";
    int64_t wanted = held ? current : std::clamp(*asked, low, high);
    if (current != wanted || desired != wanted)
      return "there are " + std::to_string(current) + ", it wants " + std::to_string(desired) + ", and should " +
             std::to_string(wanted) + " as " + std::to_string(*asked) + " are asked for";
    if (able != "True/ReadyForNewScale") return "is ready, and says " + able;
    if (limited.starts_with("True/") != (*asked != wanted))
      return "says " + limited + " when " + std::to_string(*asked) + " are asked for and " + std::to_string(wanted) + " allowed";
    return "";
  }

  std::map<std::string, std::vector<Scaling>> past_;  // by the autoscaler's uid
  int daemons_ = 0;
};

}  // namespace

std::unique_ptr<Rule> autoscalers_rule() { return std::make_unique<AutoscalersRule>(); }

}  // namespace coracle::simulation

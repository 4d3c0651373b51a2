// SPDX-License-Identifier: Apache-2.0
// Actions on HorizontalPodAutoscalers, and the load of the scaled pods. See user.h. Each workload has at most one autoscaler:
// several would conflict, and Kubernetes guarantees nothing then.
#include "tests/simulation/nodes.h"
#include "tests/simulation/user.h"

namespace coracle::simulation {

void User::may_autoscale() {
  size_t before = deeds_.size();
  may(0.3, "autoscalers",
      {[this] { create_autoscaler(); }, [this] { create_autoscaler(); }, [this] { change_load(); }, [this] { change_load(); },
       [this] { change_load(); }, [this] { remove(kHorizontalPodAutoscaler, false); },
       [this] {
         change(kHorizontalPodAutoscaler,
                [this](json::value& body) { make(body, "spec") = autoscaler_spec(*find(body, "spec.scaleTargetRef")); });
       }});
  autoscales_ = deeds_.size() > before;
}

void User::create_autoscaler() {
  struct Target {
    const Kind& kind;
    std::string ns, name;
  };
  // Some autoscalers exist before their targets.
  std::vector<Target> targets = {{kDeployment, ns(), name("web")}, {kReplicationController, ns(), name("rc")}};
  for (const Kind* kind : {&kDeployment, &kReplicaSet, &kReplicationController, &kStatefulSet})
    for (const ObjectPtr& there : cluster_state_.all(*kind))
      if (!there->controller()) targets.push_back({*kind, there->ns(), there->name()});
  Target target = dice_.pick(targets);
  json::value reference = {{"apiVersion", target.kind.api_version()}, {"kind", target.kind.kind}, {"name", target.name}};
  create(kHorizontalPodAutoscaler,
         {{"metadata", {{"name", target.name}, {"namespace", target.ns}}}, {"spec", autoscaler_spec(std::move(reference))}});
}

json::object User::autoscaler_spec(json::value target) {
  int64_t least = dice_.between(1, 3);
  json::object spec{
      {"scaleTargetRef", std::move(target)}, {"minReplicas", least}, {"maxReplicas", least + dice_.between(0, big_ ? 7 : 4)}};
  json::array metrics;
  for (int64_t i = dice_.chance(0.1) ? 0 : dice_.between(1, 2); i > 0; --i) {
    bool cpu = dice_.chance(0.7), of_container = dice_.chance(0.3);
    json::object source{{"name", cpu ? "cpu" : "memory"}};
    if (dice_.chance(0.6)) source["target"] = {{"type", "Utilization"}, {"averageUtilization", dice_.between(3, 12) * 10}};
    else
      source["target"] = {{"type", "AverageValue"},
                          {"averageValue", cpu ? std::to_string(dice_.between(1, 8) * 50) + "m"
                                               : std::to_string(dice_.between(1, 8) * 10) + "Mi"}};
    if (of_container) source["container"] = dice_.chance(0.9) ? "main" : "other";
    metrics.push_back({{"type", of_container ? "ContainerResource" : "Resource"},
                       {of_container ? "containerResource" : "resource", std::move(source)}});
  }
  if (!metrics.empty()) spec["metrics"] = std::move(metrics);
  json::object behavior;
  if (dice_.chance(0.4)) behavior["scaleUp"] = scaling_rules(true);
  if (dice_.chance(0.4)) behavior["scaleDown"] = scaling_rules(false);
  if (!behavior.empty()) spec["behavior"] = std::move(behavior);
  return spec;
}

// Windows and periods are shorter than the time without changes that defines rest.
json::object User::scaling_rules(bool up) {
  json::object rules;
  if (dice_.chance(0.5)) rules["stabilizationWindowSeconds"] = dice_.between(0, up ? 4 : 8) * 60;
  if (dice_.chance(0.6)) rules["selectPolicy"] = dice_.pick<std::string>({"Max", "Min", "Max", "Min", "Disabled"});
  if (dice_.chance(0.2)) rules["tolerance"] = dice_.pick<std::string>({"50m", "200m", "500m"});
  json::array policies;
  for (int64_t i = dice_.between(0, 2); i > 0; --i) {
    bool percent = dice_.chance(0.5);
    policies.push_back({{"type", percent ? "Percent" : "Pods"},
                        {"value", percent ? dice_.between(1, 10) * 10 : dice_.between(1, 3)},
                        {"periodSeconds", dice_.between(1, 20) * 15}});
  }
  if (!policies.empty()) rules["policies"] = std::move(policies);
  return rules;
}

void User::change_load() {
  ObjectPtr autoscaler = some(kHorizontalPodAutoscaler);  // it has the name of its target, which is also the pods' app label
  std::string app = autoscaler ? autoscaler->ns() + "." + autoscaler->name() : ns() + "." + name("web");
  bool shared = dice_.chance(0.7);
  int64_t parts = shared ? dice_.between(0, 12) : 1;
  std::string load = (shared ? "shared " : "each ") + std::to_string(dice_.between(0, 40) * 10 * parts) + " " +
                     std::to_string(dice_.between(1, 9) * 10 * parts);
  json::value data = {{"data", {{app, load}}}};
  if (!cluster_state_.find(kConfigMap, kLoads))
    create(kConfigMap, {{"metadata", {{"name", kLoads.name}, {"namespace", kLoads.ns}}}});
  bool done = client_.patch(kConfigMap, kLoads, PatchType::merge, data).ok();
  if (trace_.on()) trace_.say("user: the load of " + app + " is " + load + (done ? "" : " (refused)"));
}

}  // namespace coracle::simulation

// SPDX-License-Identifier: Apache-2.0
// See user.h.
#include "tests/simulation/user.h"

#include "tests/simulation/nodes.h"

namespace coracle::simulation {

User::User(const ClusterState& cluster_state, Cluster& cluster, Dice& dice, const Trace& trace, bool ranks)
    : cluster_state_(cluster_state), cluster_(cluster), client_(cluster, Actor::user), dice_(dice), trace_(trace) {
  calm_ = dice_.chance(0.3);
  breaks_ = !calm_ && dice_.chance(0.3);
  big_ = dice_.chance(0.3);
  if (dice_.chance(0.3)) {
    namespaces_.push_back("other");
  }
  const double rough = calm_ ? 0 : 0.5;  // probability of actions that delete pods behind the controllers' back
  may(0.7, "deployments",
      {[this] { create_deployment(); }, [this] { create_deployment(); }, [this] { new_template(kDeployment); },
       [this] { new_template(kDeployment); }});
  may(rough, "scaling",
      {[this] { scale(kDeployment); }, [this] { scale(kReplicaSet); }, [this] { scale(kReplicationController); }});
  may(rough, "rollouts",
      {[this] { roll_back(); },
       [this] { change(kDeployment, [this](json::value& body) { make(body, "spec.paused") = dice_.chance(0.5); }); },
       [this] {
         change(kDeployment, [this](json::value& body) { make(body, "spec.minReadySeconds") = dice_.between(0, 2) * 5; });
       }});
  may(rough * 0.7, "deletions",
      {[this] { remove(kDeployment, true); }, [this] { remove(kReplicaSet, true); },
       [this] { remove(kReplicationController, true); }});
  may(rough, "replicasets", {[this] { create_set(kReplicaSet); }});
  may(rough, "replicationcontrollers", {[this] { create_set(kReplicationController); }});
  may(rough, "pods", {[this] { create_pod(); }, [this] { remove(kPod, false); }});
  may(rough * 0.6, "labels",
      {[this] { change(kPod, [this](json::value& body) { make(body, "metadata.labels.app") = name("x"); }); }});
  may(rough, "evictions", {[this] { evict(); }, [this] { evict(); }, [this] { drain(); }, [this] { create_budget(); }});
  may(0.4, "budgets",
      {[this] { create_budget(); }, [this] { remove(kPodDisruptionBudget, false); },
       [this] {
         change(kPodDisruptionBudget, [this](json::value& body) {
           for (const char* amount : {"minAvailable", "maxUnavailable"})
             if (find(body, std::string("spec.") + amount)) make(body, std::string("spec.") + amount) = dice_.between(0, 3);
         });
       }});
  may(0.5, "services", {[this] { create_service(); }, [this] { remove(kService, false); }});
  may(rough * 0.5, "quotas",
      {[this] { create_quota(); }, [this] { remove(kResourceQuota, false); },
       [this] {
         change(kResourceQuota,
                [this](json::value& body) { make(body, "spec.hard.pods") = std::to_string(dice_.between(2, 12)); });
       }});
  may(rough, "nodes",
      {[this] { change(kNode, [this](json::value& body) { make(body, "spec.unschedulable") = dice_.chance(0.5); }); },
       [this] {
         change(kNode, [this](json::value& body) {
           json::array taints;
           for (const json::value& taint : get_array(body, "spec.taints"))
             if (get_string(taint, "key") != "dedicated") taints.push_back(taint);
           if (dice_.chance(0.5))
             taints.push_back({{"key", "dedicated"},
                               {"value", "x"},
                               {"effect", dice_.pick<std::string>({"NoSchedule", "NoSchedule", "NoExecute"})}});
           make(body, "spec.taints") = taints;
         });
       }});
  may_autoscale();
  may_run_jobs(rough);
  if (namespaces_.size() > 1)
    may(rough * 0.5, "namespaces",
        {[this] {
           (void)client_.remove(kNamespace, {"", "other"});
         },
         [this] {
           create(kNamespace, {{"metadata", {{"name", "other"}}}});
         }});
  may_keep_sets(rough);
  may_store(rough);
  drop_some();
  ranks_ = ranks && !calm_;
  big_ |= ranks_;
  if (ranks_)
    may(1, "priorities",
        {[this] { create_pod(); }, [this] { create_deployment(); }, [this] { create_set(kReplicaSet); },
         [this] { scale(kReplicaSet); }, [this] { scale(kDeployment); }});
  if (deeds_.empty()) may(1, "deployments", {[this] { create_deployment(); }, [this] { new_template(kDeployment); }});
}

void User::may(double probability, const std::string& name, const std::vector<Deed>& deeds) {
  if (!dice_.chance(probability)) return;
  deeds_.emplace_back(name, deeds);
}

// With many actions, each would be rare: some users have few different actions, and use them often.
void User::drop_some() {
  if (!dice_.chance(0.5)) return;
  while (deeds_.size() > 3) deeds_.erase(deeds_.begin() + dice_.between(0, int64_t(deeds_.size()) - 1));
}

std::string User::text() const {
  std::string text = calm_ ? "calm:" : breaks_ ? "breaking:" : "";
  for (const auto& [name, deeds] : deeds_) text += " " + name;
  return text;
}

constexpr const char* kClasses[] = {"modest", "important", "urgent", "polite"};  // a polite pod does not preempt

void User::begin() {
  if (ranks_) create_classes();
  if (stores_) create_storage_classes();
  if (namespaces_.size() > 1) create(kNamespace, {{"metadata", {{"name", "other"}}}});
}

void User::act() {
  std::vector<const Deed*> all;
  for (const auto& [name, deeds] : deeds_)
    for (const Deed& deed : deeds) all.push_back(&deed);
  (*dice_.pick(all))();
}

void User::relent() {
  for (const ObjectPtr& node : cluster_state_.all(kNode)) {
    json::value body = node->json();
    body.at("spec").get_object().erase("unschedulable");
    json::array kept;
    for (const json::value& taint : get_array(body, "spec.taints"))
      if (get_string(taint, "key") != "dedicated") kept.push_back(taint);
    make(body, "spec.taints") = kept;
    (void)client_.update(kNode, body);
  }
  for (const ObjectPtr& deployment : cluster_state_.all(kDeployment))
    if (dice_.chance(0.8)) (void)client_.patch(kDeployment, deployment->key(), PatchType::merge, {{"spec", {{"paused", false}}}});
  relent_jobs();
}

void User::say(const std::string& what, const Kind& kind, const Key& key, bool done) {
  if (!trace_.on()) return;
  ObjectPtr now = cluster_state_.find(kind, key);
  const json::value* spec = now ? find(now->json(), "spec") : nullptr;
  trace_.say("user: " + what + " " + kind.qualified_resource() + " " + key.text() + (done ? "" : " (refused)") +
             (spec && kind != kPod ? " " + to_text(*spec) : ""));
}

void User::create(const Kind& kind, json::value body) {
  if (kind.namespaced && get_string(body, "metadata.namespace").empty()) make(body, "metadata.namespace") = ns();
  auto created = client_.create(kind, body);
  Key key{std::string(get_string(body, "metadata.namespace")), std::string(get_string(body, "metadata.name"))};
  if (!created && created.error().code() == Code::invalid) trace_.say(created.error().text());
  say("creates", kind, key, created.ok());
}

ObjectPtr User::some(const Kind& kind) {
  std::vector<ObjectPtr> all = cluster_state_.all(kind);
  std::erase_if(all, [](const ObjectPtr& object) { return object->ns().starts_with("kube-") || object->name() == "kubernetes"; });
  return all.empty() ? nullptr : dice_.pick(all);
}

void User::change(const Kind& kind, const std::function<void(json::value& body)>& how) {
  ObjectPtr object = some(kind);
  if (!object) return;
  json::value body = object->json();
  how(body);
  say("changes", kind, object->key(), client_.update(kind, body).ok());
}

void User::remove(const Kind& kind, bool any_propagation) {
  ObjectPtr object = some(kind);
  if (!object) return;
  DeleteOptions options;
  if (any_propagation) options.propagation = dice_.pick<std::string>({"", "Background", "Foreground", "Orphan"});
  if (kind == kPod && dice_.chance(0.1)) options.grace_period_seconds = 0;
  say("removes " + options.propagation, kind, object->key(), client_.remove(kind, object->key(), options).ok());
}

// ---- workloads ----

json::object User::pod_template(const std::string& app) {
  json::object container{{"name", "main"}, {"image", "app:" + std::to_string(dice_.between(1, 4))}};
  if (dice_.chance(autoscales_ ? 0.8 : 0.4))
    container["resources"] = {{"requests", {{"cpu", dice_.pick<std::string>({"100m", "500m", "1"})}, {"memory", "64Mi"}}}};
  json::object spec;
  if (ranks_) rank(spec, container);
  spec["containers"] = json::array{container};
  if (dice_.chance(0.2)) {
    json::object toleration{{"key", "dedicated"}, {"operator", "Exists"}};
    if (dice_.chance(0.5)) toleration["effect"] = "NoExecute", toleration["tolerationSeconds"] = dice_.between(0, 10) * 30;
    spec["tolerations"] = json::array{toleration};
  }
  json::object metadata{{"labels", {{"app", app}}}};
  if (breaks_ && dice_.chance(0.3)) metadata["annotations"] = {{kOutcome, "breaks"}};
  return {{"metadata", std::move(metadata)}, {"spec", std::move(spec)}};
}

void User::create_classes() {
  for (int value = -5; const char* name : kClasses) {
    std::string_view policy = std::string_view(name) == "polite" ? "Never" : "PreemptLowerPriority";
    create(kPriorityClass, {{"metadata", {{"name", name}}}, {"value", value}, {"preemptionPolicy", policy}});
    value += 100;
  }
}

void User::rank(json::object& spec, json::object& container) {
  if (dice_.chance(0.7)) spec["priorityClassName"] = dice_.pick<std::string>({std::begin(kClasses), std::end(kClasses)});
  if (dice_.chance(0.9))
    container["resources"] = {{"requests", {{"cpu", dice_.pick<std::string>({"500m", "1", "1", "2"})}, {"memory", "64Mi"}}}};
}

void User::create_deployment() {
  std::string app = name("web");
  json::object spec{{"replicas", dice_.between(calm_ ? 1 : 0, big_ ? 10 : 4)},
                    {"selector", {{"matchLabels", {{"app", app}}}}},
                    {"template", pod_template(app)}};
  if (dice_.chance(0.2)) {
    spec["strategy"] = {{"type", "Recreate"}};
  } else if (dice_.chance(0.8)) {
    auto amount = [&]() -> json::value {
      if (dice_.chance(0.3)) return json::value(std::to_string(dice_.pick<int>({10, 25, 50, 100})) + "%");
      return dice_.between(0, 3);
    };
    json::value surge = amount(), unavailable = amount();
    if (surge == json::value(0)) unavailable = 1;
    spec["strategy"] = {{"type", "RollingUpdate"}, {"rollingUpdate", {{"maxSurge", surge}, {"maxUnavailable", unavailable}}}};
  }
  if (dice_.chance(0.2)) spec["minReadySeconds"] = dice_.between(1, 10);
  if (dice_.chance(0.3)) spec["revisionHistoryLimit"] = dice_.between(0, 2);
  create(kDeployment, {{"metadata", {{"name", app}}}, {"spec", std::move(spec)}});
}

void User::create_set(const Kind& kind) {
  bool old = kind == kReplicationController;
  std::string app = name(old ? "rc" : "rs");
  json::object spec{{"replicas", dice_.between(0, big_ ? 10 : 4)}, {"template", pod_template(app)}};
  if (old) spec["selector"] = {{"app", app}};
  else spec["selector"] = {{"matchLabels", {{"app", app}}}};
  if (dice_.chance(0.2)) spec["minReadySeconds"] = dice_.between(1, 10);
  create(kind, {{"metadata", {{"name", app}}}, {"spec", std::move(spec)}});
}

void User::create_pod() {
  json::value pod = pod_template(name(dice_.pick<std::string>({"rs", "rc", "web", "lone"})));
  make(pod, "metadata.name") = name("pod");
  create(kPod, std::move(pod));
}

void User::scale(const Kind& kind) {
  ObjectPtr object = some(kind);
  if (!object) return;
  bool done = client_
                  .patch(kind, object->key(), PatchType::merge, {{"spec", {{"replicas", dice_.between(0, big_ ? 10 : 5)}}}},
                         {.subresource = "scale"})
                  .ok();
  say("scales", kind, object->key(), done);
}

void User::new_template(const Kind& kind) {
  change(kind, [this](json::value& body) {
    std::string app(get_string(body, "spec.template.metadata.labels.app"));
    make(body, "spec.template") = pod_template(app);
  });
}

// As `kubectl rollout undo`: restores the template of one of the old sets.
void User::roll_back() {
  ObjectPtr deployment = some(kDeployment);
  if (!deployment) return;
  std::vector<ObjectPtr> sets = cluster_state_.controlled(kReplicaSet, *deployment);
  if (sets.empty()) return;
  json::value body = deployment->json();
  make(body, "spec.template") = *find(dice_.pick(sets)->json(), "spec.template");
  make(body, "spec.template.metadata.labels").get_object().erase("pod-template-hash");
  say("rolls back", kDeployment, deployment->key(), client_.update(kDeployment, body).ok());
}

// ---- objects around workloads ----

void User::create_service() {
  std::string app = name(dice_.pick<std::string>({"web", "rs", "rc", "db", "ds"}));
  create(kService,
         {{"metadata", {{"name", app}}}, {"spec", {{"selector", {{"app", app}}}, {"ports", json::array{{{"port", 80}}}}}}});
}

void User::create_budget() {
  std::string app = name(dice_.pick<std::string>({"web", "rs", "rc", "db", "ds"}));
  ObjectPtr pod = dice_.chance(0.8) ? some(kPod) : nullptr;
  if (pod && !pod->label("app").empty()) app = pod->label("app");
  json::object spec{{"selector", {{"matchLabels", {{"app", app}}}}}};
  json::value amount = dice_.between(0, 3);
  if (dice_.chance(0.3)) amount = json::value(std::to_string(dice_.pick<int>({10, 50, 100})) + "%");
  spec[dice_.chance(0.5) ? "minAvailable" : "maxUnavailable"] = amount;
  if (dice_.chance(0.2)) spec["unhealthyPodEvictionPolicy"] = "AlwaysAllow";
  create(kPodDisruptionBudget, {{"metadata", {{"name", app}, {"namespace", pod ? pod->ns() : ns()}}}, {"spec", std::move(spec)}});
}

void User::create_quota() {
  create(kResourceQuota,
         {{"metadata", {{"name", "few"}}}, {"spec", {{"hard", {{"pods", std::to_string(dice_.between(2, 12))}}}}}});
}

void User::evict() {
  if (ObjectPtr pod = some(kPod)) evict(*pod);
}

void User::evict(const Object& pod) {
  json::value body = {
      {"apiVersion", "policy/v1"}, {"kind", "Eviction"}, {"metadata", {{"name", pod.name()}, {"namespace", pod.ns()}}}};
  say("evicts", kPod, pod.key(), client_.create_subresource(kPod, pod.key(), "eviction", body).ok());
}

// As `kubectl drain`.
void User::drain() {
  ObjectPtr node = some(kNode);
  if (!node) return;
  json::value body = node->json();
  make(body, "spec.unschedulable") = true;
  say("drains", kNode, node->key(), client_.update(kNode, body).ok());
  for (const ObjectPtr& pod : cluster_state_.all(kPod))
    if (get_string(pod->json(), "spec.nodeName") == node->name()) evict(*pod);
}

}  // namespace coracle::simulation

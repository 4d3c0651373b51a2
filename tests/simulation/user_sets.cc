// SPDX-License-Identifier: Apache-2.0
// Actions on StatefulSets, their claims, and DaemonSets. See user.h.
#include "tests/simulation/user.h"

namespace coracle::simulation {

void User::may_keep_sets(double rough) {
  may(0.35, "statefulsets",
      {[this] { create_stateful_set(); }, [this] { create_stateful_set(); }, [this] { new_template(kStatefulSet); },
       [this] { new_template(kStatefulSet); }});
  may(rough * 0.6, "statefulsets' changes",
      {[this] { scale(kStatefulSet); }, [this] { scale(kStatefulSet); }, [this] { remove(kStatefulSet, true); },
       [this] { put_back(kStatefulSet); },
       [this] {
         change(kStatefulSet, [this](json::value& body) { make(body, "spec.updateStrategy") = update_strategy(kStatefulSet); });
       },
       [this] {
         change(kStatefulSet, [this](json::value& body) { make(body, "spec.ordinals") = {{"start", dice_.between(0, 2)}}; });
       },
       [this] { remove(kPersistentVolumeClaim, false); }});
  may(0.35, "daemonsets",
      {[this] { create_daemon_set(); }, [this] { new_template(kDaemonSet); }, [this] { new_template(kDaemonSet); }});
  may(rough * 0.6, "daemonsets' changes",
      {[this] { remove(kDaemonSet, true); }, [this] { put_back(kDaemonSet); },
       [this] {
         change(kDaemonSet, [this](json::value& body) { make(body, "spec.updateStrategy") = update_strategy(kDaemonSet); });
       },
       [this] {
         change(kNode, [this](json::value& body) { make(body, "metadata.labels.zone") = dice_.pick<std::string>({"a", "b"}); });
       }});
}

void User::create_stateful_set() {
  std::string app = name("db");
  json::object spec{{"replicas", dice_.between(0, big_ ? 8 : 4)},
                    {"serviceName", app},
                    {"selector", {{"matchLabels", {{"app", app}}}}},
                    {"template", pod_template(app)},
                    {"podManagementPolicy", dice_.chance(0.6) ? "OrderedReady" : "Parallel"},
                    {"updateStrategy", update_strategy(kStatefulSet)}};
  if (dice_.chance(0.2)) spec["minReadySeconds"] = dice_.between(1, 10);
  if (dice_.chance(0.2)) spec["ordinals"] = {{"start", dice_.between(0, 3)}};
  if (dice_.chance(0.3)) spec["revisionHistoryLimit"] = dice_.between(0, 2);
  if (dice_.chance(0.4)) {
    spec["volumeClaimTemplates"] =
        json::array{{{"metadata", {{"name", "data"}}},
                     {"spec", {{"accessModes", {"ReadWriteOnce"}}, {"resources", {{"requests", {{"storage", "1Gi"}}}}}}}}};
    auto policy = [this] { return dice_.chance(0.5) ? "Delete" : "Retain"; };
    spec["persistentVolumeClaimRetentionPolicy"] = {{"whenDeleted", policy()}, {"whenScaled", policy()}};
  }
  create(kStatefulSet, {{"metadata", {{"name", app}}}, {"spec", std::move(spec)}});
}

void User::create_daemon_set() {
  std::string app = name("ds");
  json::object spec{{"selector", {{"matchLabels", {{"app", app}}}}},
                    {"template", pod_template(app)},
                    {"updateStrategy", update_strategy(kDaemonSet)}};
  if (dice_.chance(0.3)) make(spec["template"], "spec.nodeSelector") = {{"zone", "a"}};
  if (dice_.chance(0.2)) spec["minReadySeconds"] = dice_.between(1, 10);
  if (dice_.chance(0.3)) spec["revisionHistoryLimit"] = dice_.between(0, 2);
  create(kDaemonSet, {{"metadata", {{"name", app}}}, {"spec", std::move(spec)}});
}

json::value User::update_strategy(const Kind& kind) {
  if (dice_.chance(0.2)) return {{"type", "OnDelete"}};
  json::value most = dice_.between(1, 3);
  if (dice_.chance(0.3)) most = json::value(std::to_string(dice_.pick<int>({10, 25, 50, 100})) + "%");
  json::object rolling;
  if (kind == kStatefulSet) {
    if (dice_.chance(0.3)) rolling["partition"] = dice_.between(0, 3);
    if (dice_.chance(0.3)) rolling["maxUnavailable"] = most;
  } else if (dice_.chance(0.5)) {
    rolling["maxUnavailable"] = most;
  } else if (dice_.chance(0.6)) {
    rolling["maxSurge"] = most, rolling["maxUnavailable"] = 0;
  }
  return {{"type", "RollingUpdate"}, {"rollingUpdate", std::move(rolling)}};
}

// As `kubectl rollout undo`: a revision contains a patch.
void User::put_back(const Kind& kind) {
  ObjectPtr set = some(kind);
  if (!set) return;
  std::vector<ObjectPtr> revisions = cluster_state_.controlled(kControllerRevision, *set);
  if (revisions.empty()) return;
  bool done = client_.patch(kind, set->key(), PatchType::strategic, *find(dice_.pick(revisions)->json(), "data")).ok();
  say("rolls back", kind, set->key(), done);
}

}  // namespace coracle::simulation

// SPDX-License-Identifier: Apache-2.0
// The scheduler: a pod is bound once; to a node that takes it, by its taints, its cordon and its room, in some state that the
// daemon may still believe in. At rest, no pod waits that a node would take.
// Source: Kubernetes scheduling: NodeUnschedulable, TaintToleration, NodeResourcesFit.
#include <algorithm>

#include "store/object/quantity.h"
#include "tests/simulation/world.h"

namespace coracle::simulation {
namespace {

int64_t quantity(const json::value& root, const std::string& path, std::string_view resource, bool milli) {
  const json::object& amounts = get_object(root, path);
  const json::value* value = amounts.if_contains(resource);
  if (!value) return 0;
  auto parsed = Quantity::from_json(*value);
  return !parsed ? 0 : milli ? parsed->milli_value() : parsed->value();
}

struct Room {
  int64_t cpu = 0, memory = 0, pods = 0;
  // With all that is used, of which `more` is what comes: who asks for nothing finds it everywhere.
  bool holds(const Room& used, const Room& more) const {
    return (more.cpu == 0 || used.cpu <= cpu) && (more.memory == 0 || used.memory <= memory) && used.pods <= pods;
  }
};

Room asked(const Object& pod) {
  Room room{0, 0, 1};
  for (const json::value& container : get_array(pod.json(), "spec.containers")) {
    room.cpu += quantity(container, "resources.requests", "cpu", true);
    room.memory += quantity(container, "resources.requests", "memory", false);
  }
  return room;
}

Room offered(const Object& node) {
  return {quantity(node.json(), "status.allocatable", "cpu", true), quantity(node.json(), "status.allocatable", "memory", false),
          quantity(node.json(), "status.allocatable", "pods", false)};
}

bool tolerates(const Object& pod, const json::value& taint) {
  for (const json::value& toleration : get_array(pod.json(), "spec.tolerations")) {
    std::string_view key = get_string(toleration, "key"), effect = get_string(toleration, "effect");
    if (!key.empty() && key != get_string(taint, "key")) continue;
    if (!effect.empty() && effect != get_string(taint, "effect")) continue;
    if (get_string(toleration, "operator") == "Exists" || get_string(toleration, "value") == get_string(taint, "value")) return true;
  }
  return false;
}

bool takes(const Object& node, const Object& pod) {
  static const json::value cordon = {{"key", "node.kubernetes.io/unschedulable"}, {"effect", "NoSchedule"}};
  if (get_bool(node.json(), "spec.unschedulable") && !tolerates(pod, cordon)) return false;
  for (const json::value& taint : get_array(node.json(), "spec.taints"))
    if (get_string(taint, "effect") != "PreferNoSchedule" && !tolerates(pod, taint)) return false;
  return true;
}

class PlacementRule : public Rule {
 public:
  void after(const World& world, Actor actor, const Change& change) override {
    if (!(*change.kind == kPod) || !change.before || !change.after) return;
    std::string_view before = get_string(change.before->json(), "spec.nodeName"), node = get_string(change.after->json(), "spec.nodeName");
    if (before == node) return;
    std::string name = "placement: " + change.after->key().text() + " on " + std::string(node);
    if (!before.empty()) return world.violated(name + " was bound before, to " + std::string(before));
    if (actor != Actor::daemon) return;
    std::vector<ObjectPtr> nodes = world.believable(kNode, {"", std::string(node)});
    if (nodes.empty()) return world.violated(name + ", which the daemon knows is gone");
    Room used = used_on(world, node, change.after->uid());
    bool taken = std::any_of(nodes.begin(), nodes.end(), [&](const ObjectPtr& each) { return takes(*each, *change.after); });
    bool fits = std::any_of(nodes.begin(), nodes.end(), [&](const ObjectPtr& each) { return offered(*each).holds(used, asked(*change.after)); });
    if (!taken) return world.violated(name + ", which does not take it");
    if (!fits) world.violated(name + ", which has no room: " + std::to_string(used.cpu) + "m, " + std::to_string(used.pods) + " pods");
  }

  void at_rest(const World& world) override {
    for (const ObjectPtr& pod : world.all(kPod)) {
      if (!active(*pod) || !get_string(pod->json(), "spec.nodeName").empty() || !get_array(pod->json(), "spec.schedulingGates").empty() ||
          find(pod->json(), "spec.affinity"))
        continue;
      for (const ObjectPtr& node : world.all(kNode)) {
        Room used = used_on(world, node->name(), ""), more = asked(*pod);
        used = {used.cpu + more.cpu, used.memory + more.memory, used.pods + more.pods};
        if (takes(*node, *pod) && offered(*node).holds(used, more)) return world.violated("placement: " + pod->key().text() + " waits, and " + node->name() + " would take it");
      }
    }
  }

 private:
  // By what the daemon knows to be there. `own` counts in any case.
  static Room used_on(const World& world, std::string_view node, const std::string& own) {
    Room used;
    for (const ObjectPtr& pod : world.all(kPod)) {
      if (get_string(pod->json(), "spec.nodeName") != node || finished(*pod)) continue;
      if (pod->uid() != own && world.daemon_unaware_of(*pod)) continue;
      Room more = asked(*pod);
      used = {used.cpu + more.cpu, used.memory + more.memory, used.pods + more.pods};
    }
    return used;
  }
};

}  // namespace

std::unique_ptr<Rule> placement_rule() { return std::make_unique<PlacementRule>(); }

}  // namespace coracle::simulation

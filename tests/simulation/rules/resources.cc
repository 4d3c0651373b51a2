// SPDX-License-Identifier: Apache-2.0
// See resources.h.
#include "tests/simulation/rules/resources.h"

#include <algorithm>

#include "daemon/volume/backing.h"
#include "daemon/volume/match.h"
#include "store/object/quantity.h"

namespace coracle::simulation {
namespace {

int64_t quantity(const json::value& root, const std::string& path, std::string_view resource, bool milli) {
  const json::object& amounts = get_object(root, path);
  const json::value* value = amounts.if_contains(resource);
  if (!value) return 0;
  auto parsed = Quantity::from_json(*value);
  return !parsed ? 0 : milli ? parsed->milli_value() : parsed->value();
}

bool tolerates_taint(const Object& pod, const json::value& taint) {
  return std::ranges::any_of(get_array(pod.json(), "spec.tolerations"),
                             [&](const json::value& toleration) { return tolerates(toleration, taint); });
}

}  // namespace

Resources asked(const Object& pod) {
  Resources resources{0, 0, 1};
  for (const json::value& container : get_array(pod.json(), "spec.containers")) {
    resources.cpu += quantity(container, "resources.requests", "cpu", true);
    resources.memory += quantity(container, "resources.requests", "memory", false);
  }
  return resources;
}

Resources offered(const Object& node) {
  return {quantity(node.json(), "status.allocatable", "cpu", true), quantity(node.json(), "status.allocatable", "memory", false),
          quantity(node.json(), "status.allocatable", "pods", false)};
}

bool tolerates(const json::value& toleration, const json::value& taint) {
  std::string_view key = get_string(toleration, "key"), effect = get_string(toleration, "effect");
  if ((!key.empty() && key != get_string(taint, "key")) || (!effect.empty() && effect != get_string(taint, "effect")))
    return false;
  return get_string(toleration, "operator") == "Exists" || get_string(toleration, "value") == get_string(taint, "value");
}

bool takes(const Object& node, const Object& pod) {
  static const json::value cordon = {{"key", "node.kubernetes.io/unschedulable"}, {"effect", "NoSchedule"}};
  if (get_bool(node.json(), "spec.unschedulable") && !tolerates_taint(pod, cordon)) return false;
  for (const json::value& taint : get_array(node.json(), "spec.taints"))
    if (get_string(taint, "effect") != "PreferNoSchedule" && !tolerates_taint(pod, taint)) return false;
  return true;
}

bool has_volumes(const ClusterState& cluster_state, const Object& node, const Object& pod) {
  auto reached = [&](const Object& volume) {
    const json::array& terms = get_array(volume.json(), "spec.nodeAffinity.required.nodeSelectorTerms");
    return terms.empty() || to_text(terms).find("\"" + node.name() + "\"") != std::string::npos;  // only node names here
  };
  auto has = [&](const Object& claim) {
    ObjectPtr bound_to = cluster_state.find(kPersistentVolume, {"", std::string(get_string(claim.json(), "spec.volumeName"))});
    if (volume::is_bound(claim)) return bound_to && reached(*bound_to);
    ObjectPtr storage_class = cluster_state.find(kStorageClass, {"", volume::class_of(claim)});
    std::string_view selected = claim.annotation(volume::kSelectedNode);
    if (!volume::waits_for_consumer(storage_class.get()) || !get_string(claim.json(), "spec.volumeName").empty()) return false;
    if (!selected.empty()) return selected == node.name();
    return get_string(storage_class->json(), "provisioner") != volume::kNoProvisioner ||
           volume::find_matching_volume(cluster_state.all(kPersistentVolume), claim, false, reached);
  };
  const json::array& volumes = get_array(pod.json(), "spec.volumes");
  return std::all_of(volumes.begin(), volumes.end(), [&](const json::value& each) {
    std::string name = volume::claim_name(pod.name(), each);
    ObjectPtr claim = name.empty() ? nullptr : cluster_state.find(kPersistentVolumeClaim, {pod.ns(), name});
    return name.empty() || (claim && !claim->deleting() && has(*claim));
  });
}

}  // namespace coracle::simulation

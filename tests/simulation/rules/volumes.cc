// SPDX-License-Identifier: Apache-2.0
// Claims and volumes: no two claims have the same volume; a claim keeps its volume; a volume is released only after its claim is
// gone; data is deleted only when no claim can get it any more. At rest, every claim has the volume that matches it, both refer
// to each other, and no directory is left without a volume. Source: Kubernetes "Persistent Volumes".
#include <algorithm>
#include <map>
#include <set>

#include "daemon/volume/match.h"
#include "tests/simulation/cluster_state.h"

namespace coracle::simulation {
namespace {

std::string_view claim_uid(const Object& volume) { return get_string(volume.json(), "spec.claimRef.uid"); }
std::string_view volume_name(const Object& claim) { return get_string(claim.json(), "spec.volumeName"); }
std::string_view phase(const Object& object) { return get_string(object.json(), "status.phase"); }

ObjectPtr claim_of(const ClusterState& cluster_state, const Object& volume) {  // null if the claim has another uid
  Key key{std::string(get_string(volume.json(), "spec.claimRef.namespace")),
          std::string(get_string(volume.json(), "spec.claimRef.name"))};
  ObjectPtr claim = cluster_state.find(kPersistentVolumeClaim, key);
  return claim && claim->uid() == claim_uid(volume) ? claim : nullptr;
}

class VolumesRule : public Rule {
 public:
  explicit VolumesRule(const Disk& disk) : disk_(disk) {}

  void after(const ClusterState& cluster_state, Actor actor, const Change& change) override {
    if (actor != Actor::daemon || !change.after) return;
    if (*change.kind == kPersistentVolumeClaim) after_claim(cluster_state, change);
    if (*change.kind == kPersistentVolume) after_volume(cluster_state, change);
  }

  void at_rest(const ClusterState& cluster_state) override {
    for (const ObjectPtr& claim : cluster_state.all(kPersistentVolumeClaim)) claim_at_rest(cluster_state, *claim);
    for (const ObjectPtr& volume : cluster_state.all(kPersistentVolume)) volume_at_rest(cluster_state, *volume);
    for (const auto& [path, size] : disk_.directories())
      if (!is_named(cluster_state, path) && !kept_.contains(path)) cluster_state.violated("volumes: nobody names " + path);
    for (const auto& [path, size] : disk_.unpublished()) {
      std::vector<ObjectPtr> claims = cluster_state.all(kPersistentVolumeClaim);
      bool waited_for = std::any_of(claims.begin(), claims.end(),
                                    [&, path = path](const ObjectPtr& claim) { return path.ends_with("_" + claim->uid()); });
      if (!waited_for && !is_named(cluster_state, path)) cluster_state.violated("volumes: nobody waits for " + path);
    }
  }

 private:
  static bool is_named(const ClusterState& cluster_state, const std::string& path) {
    std::vector<ObjectPtr> volumes = cluster_state.all(kPersistentVolume);
    return std::any_of(volumes.begin(), volumes.end(),
                       [&](const ObjectPtr& volume) { return get_string(volume->json(), "spec.local.path") == path; });
  }

  // Only the volume's own machine can delete the directory.
  static bool machine_runs(const ClusterState& cluster_state, const Object& volume) {
    std::string affinity = to_text(get_object(volume.json(), "spec.nodeAffinity"));
    std::vector<ObjectPtr> nodes = cluster_state.all(kNode);
    return std::any_of(nodes.begin(), nodes.end(), [&](const ObjectPtr& node) {
      return affinity.find("\"" + node->name() + "\"") != std::string::npos && condition(*node, "Ready", "status") == "True";
    });
  }

  static void after_claim(const ClusterState& cluster_state, const Change& change) {
    const Object& claim = *change.after;
    bool binds = !claim.annotation(volume::kBindCompleted).empty() &&
                 (!change.before || change.before->annotation(volume::kBindCompleted).empty());
    if (!binds) return;
    for (const ObjectPtr& volume : cluster_state.believable(kPersistentVolume, {"", std::string(volume_name(claim))}))
      if (claim_uid(*volume) == claim.uid()) return;
    cluster_state.violated("volumes: " + describe(claim) + " is bound to " + std::string(volume_name(claim)) +
                           ", which is not its own");
  }

  void after_volume(const ClusterState& cluster_state, const Change& change) {
    const Object& volume = *change.after;
    ObjectPtr claim = claim_of(cluster_state, volume);
    bool deletes = get_string(volume.json(), "spec.persistentVolumeReclaimPolicy") == "Delete";
    if (!deletes && volume.deleting()) kept_.insert(std::string(get_string(volume.json(), "spec.local.path")));
    if (change.before && !claim_uid(*change.before).empty() && claim_uid(*change.before) != claim_uid(volume) &&
        !claim_uid(volume).empty())
      cluster_state.violated("volumes: " + describe(volume) + " goes from one claim to another");
    bool releases = phase(volume) == "Released" && (!change.before || phase(*change.before) != "Released");
    if (releases && claim && volume_name(*claim) == volume.name())
      cluster_state.violated("volumes: " + describe(volume) + " is released, though its claim is there");
  }

  static void claim_at_rest(const ClusterState& cluster_state, const Object& claim) {
    ObjectPtr volume = cluster_state.find(kPersistentVolume, {"", std::string(volume_name(claim))});
    bool completed = !claim.annotation(volume::kBindCompleted).empty();
    auto wrong = [&](const std::string& what) { cluster_state.violated("volumes: " + describe(claim) + " " + what); };
    if (completed && (!volume || (claim_uid(*volume) != claim.uid() && !claim_uid(*volume).empty())))
      return phase(claim) == "Lost" ? void() : wrong("has lost its volume and does not say so");
    if (completed) return phase(claim) == "Bound" ? void() : wrong("has its volume and is not Bound");
    if (phase(claim) != "Pending") return wrong("has no volume and is " + std::string(phase(claim)));
    if (claim.deleting()) return;
    if (!volume_name(claim).empty()) {
      if (volume && !volume->deleting() && volume::mismatch(*volume, claim).empty() &&
          (volume::is_reserved_for(*volume, claim) || !find(volume->json(), "spec.claimRef")))
        wrong("does not get the volume that it names");
      return;
    }
    ObjectPtr storage_class = cluster_state.find(kStorageClass, {"", volume::class_of(claim)});
    const bool is_scheduled = volume::waits_for_consumer(storage_class.get());
    ObjectPtr free = volume::find_matching_volume(cluster_state.all(kPersistentVolume), claim, is_scheduled);
    if (free) wrong("does not get " + free->name());
  }

  static void volume_at_rest(const ClusterState& cluster_state, const Object& volume) {
    ObjectPtr claim = claim_of(cluster_state, volume);
    std::string_view policy = get_string(volume.json(), "spec.persistentVolumeReclaimPolicy");
    bool made = !volume.annotation(volume::kProvisionedBy).empty();
    std::string want = "Available";
    if (!claim_uid(volume).empty() && claim) want = volume_name(*claim) == volume.name() ? "Bound" : "Available";
    else if (!claim_uid(volume).empty()) want = policy == "Delete" && !made ? "Failed" : "Released";
    bool was_to_be_deleted = phase(volume) == "Failed" && want == "Released" && !made;  // before its policy was changed
    if (phase(volume) != want && !was_to_be_deleted)
      cluster_state.violated("volumes: " + describe(volume) + " is " + std::string(phase(volume)) + ", not " + want);
    if (want == "Released" && made && policy == "Delete" && machine_runs(cluster_state, volume))
      cluster_state.violated("volumes: " + describe(volume) + " is needed by nobody, and stays");
  }

  const Disk& disk_;
  std::set<std::string> kept_;  // kept by a user
};

}  // namespace

std::unique_ptr<Rule> volumes_rule(const Disk& disk) { return std::make_unique<VolumesRule>(disk); }

}  // namespace coracle::simulation

// SPDX-License-Identifier: Apache-2.0
// Plugins for volumes: VolumeRestrictions (disks that cannot be shared), NodeVolumeLimits (attachments per CSI driver),
// VolumeZone, VolumeBinding (bound claims, and claims that wait for their first consumer). Source: Kubernetes "Persistent
// Volumes", "Storage Classes", "Node-specific Volume Limits", "Storage Capacity".
#include <algorithm>
#include <set>
#include <unordered_map>

#include "daemon/placement/placement.h"
#include "daemon/scheduler/plugins/plugins.h"
#include "daemon/volume/match.h"
#include "runtime/base/text.h"
#include "store/object/quantity.h"
#include "store/object/selector.h"

namespace coracle::scheduler {
namespace {

bool has_mode(const Object& claim, std::string_view mode) {
  auto modes = view::PersistentVolumeClaim(claim).spec().access_modes();
  return std::find(modes.begin(), modes.end(), mode) != modes.end();
}

class VolumeRestrictions : public Plugin {
 public:
  std::string_view name() const override { return "VolumeRestrictions"; }
  uint32_t points() const override { return pre_filter_point | filter_point; }

  struct State : CycleState::State {
    std::string used_by;  // another pod uses a claim with ReadWriteOncePod
  };
  Answer pre_filter(CycleState& cycle, Reasons&) const override {
    const PodInfo& pod = *cycle.info;
    auto state = std::make_unique<State>();
    std::optional<Users> users;
    for (const std::string& name : pod.claims) {
      ObjectPtr claim = cycle.lister.claim({pod.key.ns, name});
      if (!claim || !has_mode(*claim, "ReadWriteOncePod")) continue;
      if (!users) users = users_of_claims(cycle);
      auto user = users->find(name);
      if (user == users->end()) continue;
      state->used_by = user->second->key.text();
      break;
    }
    if (pod.disks.empty() && state->used_by.empty()) return Answer::skip;
    cycle.filter_state[index] = std::move(state);
    return Answer::success;
  }
  Answer filter(const CycleState& cycle, const NodeInfo& node, Reasons* why) const override {
    for (const PodInfoPtr& other : node.pods)
      if (share(*cycle.info, *other)) {
        if (why)
          why->push_back(
              {"node(s) had no available disk", "pod " + other->key.text() + " has it", "pod " + other->key.text() + " gone"});
        return Answer::unschedulable;
      }
    const std::string& used_by = static_cast<const State&>(*cycle.filter_state[index]).used_by;
    if (used_by.empty()) return Answer::success;
    if (why)
      why->push_back({"node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode",
                      "pod " + used_by, "pod " + used_by + " gone"});
    return Answer::unschedulable;
  }
  bool could_help(const ClusterEvent& event, const PodInfo& pod, Cluster&) const override {
    if (event.is(ClusterEvent::node_added | ClusterEvent::claims)) return true;
    if (!event.is(ClusterEvent::pod_removed)) return false;
    return (event.pod->key.ns == pod.key.ns && event.has_any_claim(pod.claims)) || share(pod, *event.pod);
  }

 private:
  static bool share(const PodInfo& a, const PodInfo& b) {
    return std::ranges::any_of(a.disks, [&](const Disk& one) {
      return std::ranges::any_of(std::ranges::equal_range(b.disks, one.id, {}, &Disk::id),
                                 [&](const Disk& two) { return one.clashes(two); });
    });
  }
  // The users of claims in the pod's namespace: for each claim the first other pod.
  using Users = std::unordered_map<std::string_view, const PodInfo*>;
  static Users users_of_claims(const CycleState& cycle) {
    Users users;
    for (const NodeInfo* node : cycle.cluster.nodes())
      for (const PodInfoPtr& other : node->pods)
        if (other->uid != cycle.info->uid && other->key.ns == cycle.info->key.ns)
          for (const std::string& claim : other->claims) users.try_emplace(claim, other.get());
    return users;
  }
};

// ---- the volumes of claims ----

ObjectPtr volume_of(const CycleState& cycle, const Object& claim) {
  std::string_view name = view::PersistentVolumeClaim(claim).spec().volume_name();
  return name.empty() ? nullptr : cycle.lister.volume(std::string(name));
}

class NodeVolumeLimits : public Plugin {
 public:
  std::string_view name() const override { return "NodeVolumeLimits"; }
  uint32_t points() const override { return pre_filter_point | filter_point; }

  Answer pre_filter(CycleState& cycle, Reasons&) const override {
    return cycle.info->claims.empty() ? Answer::skip : Answer::success;
  }
  Answer filter(const CycleState& cycle, const NodeInfo& node, Reasons* why) const override {
    ObjectPtr csi = cycle.lister.csi_node(node.name);
    if (!csi) return Answer::success;
    std::map<std::string, std::set<std::string>> there, wanted;  // volumes by driver
    add(cycle, *cycle.info, wanted);
    if (wanted.empty()) return Answer::success;
    for (const PodInfoPtr& pod : node.pods) add(cycle, *pod, there);
    for (view::CSINodeDriver driver : view::CSINode(*csi).spec().drivers()) {
      std::string name(driver.name());
      if (!wanted.contains(name) || !driver.allocatable().has_count()) continue;
      std::set<std::string>& attached = there[name];
      size_t before = attached.size(), limit = size_t(driver.allocatable().count());
      for (const std::string& volume : wanted[name]) attached.insert(volume);
      if (attached.size() == before || attached.size() <= limit) continue;
      if (why)
        why->push_back({"node(s) exceed max volume count",
                        name + ": " + std::to_string(before) + " of " + std::to_string(limit) + " volumes attached",
                        "a volume of " + name + " less"});
      return Answer::unschedulable;
    }
    return Answer::success;
  }
  bool could_help(const ClusterEvent& event, const PodInfo&, Cluster&) const override {
    if (event.is(ClusterEvent::pod_removed)) return !event.pod->claims.empty();
    return event.is(ClusterEvent::node_added | ClusterEvent::csi_nodes | ClusterEvent::claims);
  }

 private:
  static void add(const CycleState& cycle, const PodInfo& pod, std::map<std::string, std::set<std::string>>& volumes) {
    for (const std::string& name : pod.claims) {
      ObjectPtr claim = cycle.lister.claim({pod.key.ns, name});
      if (!claim) continue;
      if (ObjectPtr volume = volume_of(cycle, *claim)) {
        view::CSIPersistentVolumeSource csi = view::PersistentVolume(*volume).spec().csi();
        if (!csi.driver().empty()) volumes[std::string(csi.driver())].emplace(csi.volume_handle());
      } else if (ObjectPtr storage = cycle.lister.storage_class(volume::class_of(*claim))) {
        volumes[std::string(view::StorageClass(*storage).provisioner())].insert(claim->key().text());
      }
    }
  }
};

class VolumeZone : public Plugin {
 public:
  std::string_view name() const override { return "VolumeZone"; }
  uint32_t points() const override { return pre_filter_point | filter_point; }

  struct State : CycleState::State {
    std::vector<ObjectPtr> volumes;
  };
  Answer pre_filter(CycleState& cycle, Reasons&) const override {
    auto state = std::make_unique<State>();
    for (const std::string& name : cycle.info->claims) {
      ObjectPtr claim = cycle.lister.claim({cycle.info->key.ns, name});
      ObjectPtr volume = claim ? volume_of(cycle, *claim) : nullptr;
      if (volume && std::ranges::any_of(kKeys, [&](const char* key) { return volume->labels().contains(key); }))
        state->volumes.push_back(volume);
    }
    if (state->volumes.empty()) return Answer::skip;
    cycle.filter_state[index] = std::move(state);
    return Answer::success;
  }
  Answer filter(const CycleState& cycle, const NodeInfo& node, Reasons* why) const override {
    if (std::ranges::none_of(kKeys, [&](const char* key) { return node.labels.contains(key); }))
      return Answer::success;  // a cluster without zones
    for (const ObjectPtr& volume : static_cast<const State&>(*cycle.filter_state[index]).volumes)
      for (const char* key : kKeys) {
        std::string_view zones = volume->label(key);
        if (zones.empty() || is_in(label_value(node.labels, key), zones)) continue;
        if (why)
          why->push_back({"node(s) had no available volume zone", "volume " + volume->name() + " is in " + std::string(zones),
                          "a node in " + std::string(zones)});
        return Answer::unresolvable;
      }
    return Answer::success;
  }
  bool could_help(const ClusterEvent& event, const PodInfo&, Cluster&) const override {
    return event.is(ClusterEvent::node_added | ClusterEvent::node_labels | ClusterEvent::claims | ClusterEvent::volumes |
                    ClusterEvent::classes);
  }

 private:
  static constexpr const char* kKeys[] = {"topology.kubernetes.io/zone", "topology.kubernetes.io/region",
                                          "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"};
  static bool is_in(std::optional<std::string_view> zone, std::string_view zones) {  // "a__b" means both zones
    while (zone) {
      size_t end = zones.find("__");
      if (zones.substr(0, end) == *zone) return true;
      if (end == zones.npos) return false;
      zones.remove_prefix(end + 2);
    }
    return false;
  }
};

// ---- claims ----

bool node_has_volume(const Object& volume, const NodeInfo& node) {
  view::VolumeNodeAffinity affinity = view::PersistentVolume(volume).spec().node_affinity();
  if (!affinity.has_required()) return true;
  auto terms = affinity.required().node_selector_terms();
  return std::any_of(terms.begin(), terms.end(),
                     [&](view::NodeSelectorTerm term) { return placement::node_matches(term, node.labels, node.name); });
}

// What a node offers for a claim that waits for its first consumer: an existing volume, or provisioning (null).
struct Plan {
  ObjectPtr claim, volume;
};

struct NodePlan {
  std::vector<Plan> claims;
  ObjectPtr without_volume, without_space;  // a claim for which the node has no volume, or no space for a new one
  bool works() const { return !without_volume && !without_space; }
};

// A claim that waits for its first consumer.
struct WaitingClaim {
  ObjectPtr claim, storage_class;
  // The nodes where its driver has enough space for a new volume. Absent: the driver reports no space, and any node may do.
  std::optional<std::vector<LabelSelector>> places;
};

class VolumeBinding : public Plugin {
 public:
  std::string_view name() const override { return "VolumeBinding"; }
  uint32_t points() const override { return pre_filter_point | filter_point | reserve_point | pre_bind_point; }

  // The informers go on during a decision, so what it needs of them is read once: a node that does for a claim when it is
  // filtered must do for it when the claim is written.
  struct State : CycleState::State {
    std::vector<ObjectPtr> bound;       // volumes
    std::vector<std::string> lost;      // names of missing volumes
    std::vector<WaitingClaim> waiting;  // smallest request first
    std::vector<ObjectPtr> free;        // volumes for these
  };

  Answer pre_filter(CycleState& cycle, Reasons& why) const override {
    if (cycle.info->claims.empty()) return Answer::skip;
    auto state = std::make_unique<State>();
    std::string unbound;  // names of claims
    for (const std::string& name : cycle.info->claims) {
      ObjectPtr claim = cycle.lister.claim({cycle.info->key.ns, name});
      if (!claim && is_own(*cycle.info, name))  // as a rule at once after the pod was created
        return refuse(why, "waiting for ephemeral volume controller to create the persistentvolumeclaim \"" + name + "\"",
                      "the claim " + name);
      if (!claim) return refuse(why, "persistentvolumeclaim \"" + name + "\" not found", "the claim " + name);
      if (is_of_another(*cycle.info, *claim))
        return refuse(why,
                      "PVC " + claim->key().text() + " was not created for pod " + cycle.info->key.text() + " (pod is not owner)",
                      "another name for the pod, or the claim " + name + " gone");
      if (claim->deleting())
        return refuse(why, "persistentvolumeclaim \"" + name + "\" is being deleted", "another claim " + name);
      view::PersistentVolumeClaim view(*claim);
      if (view.status().phase() == "Lost")
        return refuse(why,
                      "persistentvolumeclaim \"" + name + "\" bound to non-existent persistentvolume \"" +
                          std::string(view.spec().volume_name()) + "\"",
                      "its volume");
      if (volume::is_bound(*claim)) {
        ObjectPtr volume = volume_of(cycle, *claim);
        if (volume) state->bound.push_back(std::move(volume));
        else state->lost.emplace_back(view.spec().volume_name());
        continue;
      }
      ObjectPtr storage = cycle.lister.storage_class(volume::class_of(*claim));
      bool waits = volume::waits_for_consumer(storage.get()) && view.spec().volume_name().empty();
      if (waits) state->waiting.push_back({claim, storage, places_for(cycle, *claim, *storage)});
      else unbound += (unbound.empty() ? "" : ", ") + name;
    }
    if (!unbound.empty())
      return refuse(why, "pod has unbound immediate PersistentVolumeClaims", "a volume for the claim " + unbound);
    std::ranges::sort(state->waiting, {}, [](const WaitingClaim& one) { return volume::request_of(*one.claim); });
    if (!state->waiting.empty()) state->free = free_volumes(cycle, *state);
    cycle.filter_state[index] = std::move(state);
    return Answer::success;
  }

  Answer filter(const CycleState& cycle, const NodeInfo& node, Reasons* why) const override {
    const State& state = static_cast<const State&>(*cycle.filter_state[index]);
    auto no = [&](std::string text, std::string figures, std::string cure) {
      if (why) why->push_back({std::move(text), std::move(figures), std::move(cure)});
      return Answer::unresolvable;
    };
    if (!state.lost.empty())
      return no("node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)", "volume " + state.lost.front(),
                "volume " + state.lost.front());
    for (const ObjectPtr& volume : state.bound)
      if (!node_has_volume(*volume, node))
        return no("node(s) didn't match PersistentVolume's node affinity", "volume " + volume->name() + " is elsewhere",
                  "a node that has volume " + volume->name());
    if (state.waiting.empty()) return Answer::success;
    NodePlan planned = plan(state, node);
    if (planned.without_space)
      return no("node(s) did not have enough free storage", "claim " + planned.without_space->name(),
                "space for a volume of " + volume::request_of(*planned.without_space).text() + " on node " + node.name);
    if (planned.without_volume)
      return no("node(s) didn't find available persistent volumes to bind", "claim " + planned.without_volume->name(),
                "an available volume on node " + node.name);
    return Answer::success;
  }

  std::vector<Write> before_bind(const CycleState& cycle, const NodeInfo& node) const override {
    std::vector<Write> writes;
    if (!cycle.filter_state[index]) return writes;
    NodePlan planned = plan(static_cast<const State&>(*cycle.filter_state[index]), node);
    if (!planned.works()) return writes;
    for (const Plan& one : planned.claims) {
      const Object& claim = *one.claim;
      if (!one.volume) {
        json::value metadata{{"uid", claim.uid()}, {"annotations", {{volume::kSelectedNode, node.name}}}};
        // Our own provisioner writes to the disk what it makes there, and with it this. Another one may have made a volume for
        // the node, wherever the scheduler would then want it.
        ObjectPtr storage = cycle.lister.storage_class(volume::class_of(claim));
        const bool is_ours = storage && volume::is_local_provisioner(view::StorageClass(*storage).provisioner());
        writes.push_back({&kPersistentVolumeClaim, claim.key(), {{"metadata", std::move(metadata)}}, is_ours});
        continue;
      }
      // The resourceVersion ensures that no other pod got the volume since it was read.
      json::value patch = {{"metadata", precondition_metadata(*one.volume)},
                           {"spec", {{"claimRef", volume::claim_reference(claim)}}}};
      if (!volume::is_reserved_for(*one.volume, claim))  // otherwise an administrator has reserved the volume
        make(patch, "metadata.annotations") = {{volume::kBoundByController, "yes"}};
      writes.push_back({&kPersistentVolume, one.volume->key(), std::move(patch)});
    }
    return writes;
  }

  bool could_help(const ClusterEvent& event, const PodInfo&, Cluster&) const override {
    return event.is(ClusterEvent::node_added | ClusterEvent::node_labels | ClusterEvent::claims | ClusterEvent::volumes |
                    ClusterEvent::classes | ClusterEvent::csi_nodes | ClusterEvent::csi_drivers | ClusterEvent::capacities);
  }

 private:
  // The claim of an ephemeral volume.
  static bool is_own(const PodInfo& pod, std::string_view claim) {
    return std::ranges::find(pod.own_claims, claim) != pod.own_claims.end();
  }
  // Whether a claim with the name of the pod's ephemeral volume belongs to another owner.
  static bool is_of_another(const PodInfo& pod, const Object& claim) {
    if (!is_own(pod, claim.name())) return false;
    auto owner = claim.controller();
    return !owner || owner->uid != pod.uid;
  }

  static Answer refuse(Reasons& why, std::string text, std::string cure) {
    why.push_back({std::move(text), "", std::move(cure)});
    return Answer::unresolvable;
  }

  static NodePlan plan(const State& state, const NodeInfo& node) {
    NodePlan out;
    std::set<std::string_view> taken;
    for (const auto& [claim, storage_class, places] : state.waiting) {
      std::string_view selected = claim->annotation(volume::kSelectedNode);
      const bool is_elsewhere = !selected.empty() && selected != node.name;
      ObjectPtr volume = selected.empty() ? best_volume(state.free, *claim, node, taken) : nullptr;
      if (volume) taken.insert(volume->name());
      if (is_elsewhere || (!volume && !can_be_made(*storage_class, node))) out.without_volume = claim;
      else if (!volume && !has_space(places, node)) out.without_space = claim;
      if (!out.works()) return out;
      out.claims.push_back({claim, std::move(volume)});
    }
    return out;
  }

  static bool has_space(const std::optional<std::vector<LabelSelector>>& places, const NodeInfo& node) {
    return !places || std::ranges::any_of(*places, [&](const LabelSelector& place) { return place.matches(node.labels); });
  }

  // Source: kube-scheduler's volume binder, hasEnoughCapacity.
  static std::optional<std::vector<LabelSelector>> places_for(const CycleState& cycle, const Object& claim,
                                                              const Object& storage_class) {
    if (!view::PersistentVolumeClaim(claim).spec().resources().requests().contains("storage")) return std::nullopt;
    ObjectPtr driver = cycle.lister.csi_driver(std::string(view::StorageClass(storage_class).provisioner()));
    if (!driver || !view::CSIDriver(*driver).spec().storage_capacity()) return std::nullopt;
    const Quantity wanted = volume::request_of(claim);
    std::vector<LabelSelector> places;
    for (const ObjectPtr& one : cycle.lister.storage_capacities()) {
      view::CSIStorageCapacity capacity(*one);
      if (capacity.storage_class_name() != storage_class.name() || !capacity.has_node_topology()) continue;
      const json::value* most = capacity.has_maximum_volume_size() ? capacity.maximum_volume_size() : capacity.capacity();
      auto limit = most ? Quantity::from_json(*most) : Result<Quantity>(Error(Code::not_found, "not reported"));
      auto place = LabelSelector::from_json(capacity.node_topology().pointer());
      if (limit && *limit >= wanted && place) places.push_back(*std::move(place));
    }
    return places;
  }

  // The volumes for waiting claims.
  static std::vector<ObjectPtr> free_volumes(const CycleState& cycle, const State& state) {
    std::set<KeyView> waiting;
    for (const WaitingClaim& one : state.waiting) waiting.insert(one.claim->key());
    std::vector<ObjectPtr> out;
    for (ObjectPtr& volume : cycle.lister.volumes()) {
      view::PersistentVolumeSpec spec = view::PersistentVolume(*volume).spec();
      bool may_be = !spec.has_claim_ref() || waiting.contains({spec.claim_ref().namespace_(), spec.claim_ref().name()});
      if (may_be) out.push_back(std::move(volume));
    }
    return out;
  }

  static ObjectPtr best_volume(const std::vector<ObjectPtr>& volumes, const Object& claim, const NodeInfo& node,
                               const std::set<std::string_view>& taken) {
    return volume::find_matching_volume(volumes, claim, false, [&](const Object& volume) {
      return !taken.contains(volume.name()) && node_has_volume(volume, node);
    });
  }

  static bool can_be_made(const Object& storage_class, const NodeInfo& node) {
    std::string_view provisioner = view::StorageClass(storage_class).provisioner();
    if (provisioner.empty() || provisioner == volume::kNoProvisioner) return false;
    auto matches = [&](view::TopologySelectorLabelRequirement one) {
      auto value = label_value(node.labels, one.key());
      auto values = one.values();
      return value && std::find(values.begin(), values.end(), *value) != values.end();
    };
    auto terms = view::StorageClass(storage_class).allowed_topologies();
    return terms.empty() || std::any_of(terms.begin(), terms.end(), [&](view::TopologySelectorTerm term) {
             auto all = term.match_label_expressions();
             return !all.empty() && std::all_of(all.begin(), all.end(), matches);  // an empty term matches no node
           });
  }
};

}  // namespace

bool is_claim_bound(const Key& key, const Lister& lister) {
  ObjectPtr claim = lister.claim(key);
  return claim && volume::is_bound(*claim);
}

std::string volume_elsewhere(const PodInfo& pod, const NodeInfo& node, const Lister& lister) {
  for (const std::string& name : pod.claims) {
    ObjectPtr claim = lister.claim({pod.key.ns, name});
    std::string bound_to(claim ? view::PersistentVolumeClaim(*claim).spec().volume_name() : std::string_view());
    ObjectPtr volume = bound_to.empty() ? nullptr : lister.volume(bound_to);
    if (volume && !node_has_volume(*volume, node)) return bound_to;
  }
  return "";
}

std::unique_ptr<Plugin> make_volume_restrictions() { return std::make_unique<VolumeRestrictions>(); }
std::unique_ptr<Plugin> make_node_volume_limits() { return std::make_unique<NodeVolumeLimits>(); }
std::unique_ptr<Plugin> make_volume_zone() { return std::make_unique<VolumeZone>(); }
std::unique_ptr<Plugin> make_volume_binding() { return std::make_unique<VolumeBinding>(); }

}  // namespace coracle::scheduler

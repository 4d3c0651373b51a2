// SPDX-License-Identifier: Apache-2.0
// Decides what the binder does with claims and volumes. Pure.
//   claim + volumes + classes   ──plan_claim──▶  bind to a volume · request a volume from a provisioner · Pending · Lost
//   volume + claim of claimRef  ──plan_volume──▶ phase · remove claimRef
// The data of a Released volume is deleted by its provisioner, not by the binder.
// Source: Kubernetes "Persistent Volumes"; pkg/controller/volume/{persistentvolume,expand} (semantics, texts).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/volume/match.h"
#include "store/object/object_ptr.h"

namespace coracle::controller {

struct VolumeEvent {
  bool warning = false;
  std::string_view reason;
  std::string message;
};

struct ObservedClaim {
  ObjectPtr claim;
  ObjectPtr named;                 // the volume of spec.volumeName; null when it does not exist
  std::vector<ObjectPtr> volumes;  // all volumes
  ObjectPtr storage_class;         // the claim's; null when it does not exist
  ObjectPtr default_class;         // null when there is none
  std::string only_node;           // the node's name when the cluster has exactly one; else ""
  bool has_selected_node = true;   // the node that the claim's annotation names exists, or it names none
  std::vector<std::string> pods;   // that use the claim and that no node suits so far, by name
};

struct ClaimPlan {
  std::string storage_class;  // set this class in the claim, which names none; nothing else is planned then
  ObjectPtr bind;             // bind the claim to this volume
  std::string provisioner;    // set the annotation of the external provisioner
  std::string node;           // set the annotation of the selected node
  bool unselect = false;      // remove the annotation of the selected node
  std::string_view phase;     // Pending or Lost; "" leaves it
  std::optional<VolumeEvent> event;
  std::optional<VolumeEvent> expansion;  // the expand controller's event
};
ClaimPlan plan_claim(const ObservedClaim& observed);

struct VolumePlan {
  std::string_view phase;  // Available, Bound, Released, Failed; "" leaves it
  std::string message;     // status.message
  bool unbind = false;     // remove the claim from claimRef
  std::optional<VolumeEvent> event;
  std::optional<VolumeEvent> of_claim;  // about the claim of claimRef
};
// `claim`: the claim of spec.claimRef's namespace and name, whatever its uid; null when it does not exist.
VolumePlan plan_volume(const Object& volume, const Object* claim);

// The volume with the claim in claimRef, and the claim with the volume in volumeName. nullopt when it is set already.
std::optional<json::value> with_claim(const Object& volume, const Object& claim);
std::optional<json::value> with_volume(const Object& claim, const Object& volume);
// The volume without claimRef when the controller set it; else, because a person reserved the volume, without claimRef's uid.
json::value without_claim(const Object& volume);
// The status of a claim in a phase in which it has no volume.
json::value unbound_status(const Object& claim, std::string_view phase);
// The status of a claim that is bound to the volume.
json::value bound_status(const Object& claim, const Object& volume);

}  // namespace coracle::controller

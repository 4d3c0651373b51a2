// SPDX-License-Identifier: Apache-2.0
// PodInfo: one pod as the scheduler looks at it again and again: read from JSON once, immutable, small, for the pods that stand
// somewhere as much as for those that wait. The object itself rests beside it, for what is asked rarely.
// Source: Kubernetes "Assigning Pods to Nodes", "Pod Topology Spread Constraints", "Volumes".
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/scheduler/resources.h"
#include "runtime/base/clock.h"
#include "store/object/kind.h"
#include "store/object/object_ptr.h"
#include "store/object/selector.h"

namespace coracle::scheduler {

inline constexpr std::string_view kDefaultSchedulerName = "default-scheduler";

// Pods with the same namespace and labels, whom every selector treats alike. `id` is small, and used again when a group is gone.
struct LabelGroup {
  std::string ns;
  json::object labels;
  uint32_t id = 0;
};
using LabelGroupPtr = std::shared_ptr<const LabelGroup>;

// Which pods a term means.
struct PodTerm {
  std::vector<std::string> namespaces;              // these, sorted
  std::optional<LabelSelector> namespace_selector;  // and those with such labels
  LabelSelector selector = LabelSelector::nothing();
  std::string topology_key;  // within which domain
  int64_t weight = 0;        // of a preference
  std::string text;          // the same for terms that mean the same pods
};

struct SpreadConstraint {
  PodTerm pods;  // of the pod's own namespace; its topology_key is the constraint's
  int64_t max_skew = 1, min_domains = 1;
  bool required = true;  // DoNotSchedule
  bool honor_affinity = true, honor_taints = false;
};

struct HostPort {
  int64_t port = 0;
  std::string protocol, ip;  // ip "": every address of the node
  auto operator<=>(const HostPort&) const = default;
};

// A volume that names its disk by itself: two pods of one node cannot always have it.
struct Disk {
  std::string id;
  bool shared_when_read_only = false, read_only = false;
  bool clashes(const Disk& other) const;
};

struct PodInfo {
  RestingPtr object;           // hold object->awake() to look inside
  std::string scheduler_name;  // "": the default one's
  std::string uid;
  Key key;
  int64_t priority = 0;
  WallTime started{};   // status.startTime, or its creation: who of two pods of the same priority has been there longer
  std::string created;  // RFC 3339
  bool deleting = false;
  LabelGroupPtr group;

  PodRequests requests;
  std::vector<HostPort> ports;  // sorted by number, protocol, address
  std::vector<PodTerm> affinity, anti_affinity, preferred, preferred_anti;
  std::vector<SpreadConstraint> spread;
  std::vector<std::string> claims;      // names of the PersistentVolumeClaims, those of ephemeral volumes too
  std::vector<std::string> own_claims;  // of these, those of ephemeral volumes
  std::vector<Disk> disks;              // sorted by id
};
using PodInfoPtr = std::shared_ptr<const PodInfo>;

// Everything but the group, which the Cluster gives.
PodInfo read_pod(const Object& pod);

// The pods of `ns` that `selector` means, within domains of `topology_key`.
PodTerm term_of(const std::string& ns, LabelSelector selector, std::string topology_key);

}  // namespace coracle::scheduler

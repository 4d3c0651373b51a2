// SPDX-License-Identifier: Apache-2.0
// PodInfo: the fields of a pod that the scheduler reads often. They are parsed from JSON once, immutable and small, for placed
// and pending pods alike. The object itself is stored compactly beside them, for rare accesses. Source: Kubernetes "Assigning
// Pods to Nodes", "Pod Topology Spread Constraints", "Volumes".
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

// Pods with the same namespace and labels, which every selector treats alike. `id` is small and reused after the group is gone.
struct LabelGroup {
  std::string ns;
  json::object labels;
  uint32_t id = 0;
};
using LabelGroupPtr = std::shared_ptr<const LabelGroup>;

// The pods that a term matches.
struct PodTerm {
  std::vector<std::string> namespaces;              // in these namespaces, sorted
  std::optional<LabelSelector> namespace_selector;  // and in those with matching labels
  LabelSelector selector = LabelSelector::nothing();
  std::string topology_key;  // the label of the domain
  int64_t weight = 0;        // of a preferred term
  std::string text;          // identical for terms that match the same pods
};

struct SpreadConstraint {
  PodTerm pods;  // in the pod's own namespace; its topology_key is that of the constraint
  int64_t max_skew = 1, min_domains = 1;
  bool required = true;  // DoNotSchedule
  bool honor_affinity = true, honor_taints = false;
};

struct HostPort {
  int64_t port = 0;
  std::string protocol, ip;  // ip "": every address of the node
  auto operator<=>(const HostPort&) const = default;
};

// A volume that identifies its disk: two pods on one node may conflict over it.
struct Disk {
  std::string id;
  bool shared_when_read_only = false, read_only = false;
  bool clashes(const Disk& other) const;
};

struct PodInfo {
  RestingPtr object;           // use object->awake() to read it
  std::string scheduler_name;  // "": the default scheduler
  std::string uid;
  Key key;
  int64_t priority = 0;
  WallTime started{};   // status.startTime or the creation time: orders pods of the same priority
  std::string created;  // RFC 3339
  bool deleting = false;
  LabelGroupPtr group;

  PodRequests requests;
  std::vector<HostPort> ports;  // sorted by number, protocol, address
  std::vector<PodTerm> affinity, anti_affinity, preferred, preferred_anti;
  std::vector<SpreadConstraint> spread;
  std::vector<std::string> claims;      // names of PersistentVolumeClaims, including those of ephemeral volumes
  std::vector<std::string> own_claims;  // those of ephemeral volumes
  std::vector<Disk> disks;              // sorted by id
};
using PodInfoPtr = std::shared_ptr<const PodInfo>;

// Everything except the group, which the Cluster sets.
PodInfo read_pod(const Object& pod);

// The pods of `ns` that match `selector`, in domains of `topology_key`.
PodTerm term_of(const std::string& ns, LabelSelector selector, std::string topology_key);

}  // namespace coracle::scheduler

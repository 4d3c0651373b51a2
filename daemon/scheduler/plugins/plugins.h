// SPDX-License-Identifier: Apache-2.0
// The plugins, with Kubernetes' names, and their parsed arguments of kubescheduler.config.k8s.io/v1. Each plugin has a file in
// this directory; small related ones share a file.
#pragma once

#include <memory>
#include <set>

#include "daemon/scheduler/framework.h"

namespace coracle::scheduler {

struct ResourceWeight {
  std::string name;
  int64_t weight = 1;
};

struct FitArgs {  // NodeResourcesFitArgs
  std::set<std::string> ignored_resources, ignored_groups;
  enum class Strategy { least_allocated, most_allocated, requested_to_capacity_ratio } strategy = Strategy::least_allocated;
  std::vector<ResourceWeight> resources{{"cpu", 1}, {"memory", 1}};
  std::vector<std::pair<int64_t, int64_t>> shape;  // utilization 0 to 100 → score 0 to 10
};
struct BalancedAllocationArgs {
  std::vector<ResourceWeight> resources{{"cpu", 1}, {"memory", 1}};
};
struct NodeAffinityArgs {
  json::value added;  // a NodeAffinity added to every pod of the profile; null: none
};
struct InterPodAffinityArgs {
  int64_t hard_pod_affinity_weight = 1;
  bool ignore_preferred_terms_of_existing_pods = false;
};
struct PodTopologySpreadArgs {
  bool system_defaults = true;
  json::array constraints;  // if false: TopologySpreadConstraints without selectors
};
struct PreemptionArgs {
  int64_t candidates_min_percentage = 10, candidates_min = 100;
};
struct VolumeBindingArgs {
  int64_t bind_timeout_seconds = 600;
};

// Whether each node matches the pod's nodeSelector and required node affinity. Null if it has neither: then every node matches.
NodeMemo* node_wishes(const CycleState& cycle);
bool is_wished(const CycleState& cycle, NodeMemo& wishes, const NodeInfo& node);
bool is_claim_bound(const Key& claim, const Lister& lister);
// The first of the pod's bound volumes that cannot be had on the node; "": none.
std::string volume_elsewhere(const PodInfo& pod, const NodeInfo& node, const Lister& lister);

// One for each plugin; what it does is said in its file. configuration.cc has their order and weights.
std::unique_ptr<Plugin> make_scheduling_gates();
std::unique_ptr<Plugin> make_priority_sort();
std::unique_ptr<Plugin> make_node_unschedulable();
std::unique_ptr<Plugin> make_node_name();
std::unique_ptr<Plugin> make_taint_toleration();
std::unique_ptr<Plugin> make_node_affinity(NodeAffinityArgs args = {});
std::unique_ptr<Plugin> make_node_ports();
std::unique_ptr<Plugin> make_node_resources_fit(FitArgs args = {});
std::unique_ptr<Plugin> make_balanced_allocation(BalancedAllocationArgs args = {});
std::unique_ptr<Plugin> make_volume_restrictions();
std::unique_ptr<Plugin> make_node_volume_limits();
std::unique_ptr<Plugin> make_volume_binding();
std::unique_ptr<Plugin> make_volume_zone();
std::unique_ptr<Plugin> make_pod_topology_spread(PodTopologySpreadArgs args = {});
std::unique_ptr<Plugin> make_inter_pod_affinity(InterPodAffinityArgs args = {});
std::unique_ptr<Plugin> make_image_locality();
std::unique_ptr<Plugin> make_dynamic_resources();
std::unique_ptr<Plugin> make_default_preemption(PreemptionArgs args = {});
std::unique_ptr<Plugin> make_default_binder();
// Predecessors of topology spread; enabled by configuration only.
std::unique_ptr<Plugin> make_selector_spread();
std::unique_ptr<Plugin> make_node_prefer_avoid_pods();

}  // namespace coracle::scheduler

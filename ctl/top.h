// SPDX-License-Identifier: Apache-2.0
// The pure part of top: prints metrics.k8s.io objects in kubectl's columns, and volume usage from the node agent's /metrics.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/json.h"
#include "store/object/quantity.h"

namespace coracle::ctl {

struct Amounts {
  Quantity cpu, memory, swap;
  void add(const json::object& usage);                           // {"cpu": "12m", "memory": "3Mi"}; an absent amount counts as 0
  std::vector<std::string> cells(bool with_swap = false) const;  // "12m", "3Mi"
};

struct Usage {
  std::string ns, name;
  Amounts amounts;
  std::vector<Usage> parts;  // the containers of a pod
};

struct PodTopOptions {
  bool all_namespaces = false, containers = false, sum = false, headers = true;
  std::string sort_by;  // "", "cpu", "memory": in descending order
  bool show_swap = false;
};
struct NodeTopOptions {
  bool show_capacity = false, headers = true;
  std::string sort_by;
  bool show_swap = false;
};

std::vector<Usage> pod_usages(const json::value& metrics);  // one PodMetrics, or a list
std::string print_pod_usages(std::vector<Usage> usages, const PodTopOptions& options);
// `metrics` and `nodes` are each one object or a list. A node without metrics is shown as <unknown>.
std::string print_node_usages(const json::value& metrics, const json::value& nodes, const NodeTopOptions& options);

// The usage of a claim's volume, from the kubelet_volume_stats_* metrics. Figures that the node does not report are absent.
struct VolumeUsage {
  std::string ns, claim;
  std::map<std::string, double, std::less<>> figures;  // "capacity_bytes", "used_bytes", "available_bytes", "inodes_used", …
};
struct VolumeTopOptions {
  bool all_namespaces = false, headers = true;
  std::string sort_by;  // "", "used", "available", "capacity": in descending order
};
std::vector<VolumeUsage> volume_usages(std::string_view metrics);  // Prometheus' text format
std::string print_volume_usages(std::vector<VolumeUsage> usages, const VolumeTopOptions& options);

}  // namespace coracle::ctl

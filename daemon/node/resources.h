// SPDX-License-Identifier: Apache-2.0
// Resources of pods in the kernel's units: quantities to shares, quotas and bytes, quality-of-service classes, and the node's own
// check whether a pod fits, which follows the scheduler's. Pure. Source: Kubernetes resource management for pods, QoS classes;
// kubelet's qos policy and admission (semantics, texts).
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "daemon/node/pod.h"
#include "runtime/runtime.h"
#include "store/object/quantity.h"

namespace coracle::node {

enum class QosClass : uint8_t { guaranteed, burstable, best_effort };
QosClass qos_of(const json::value& pod);
const char* qos_name(QosClass qos);  // the pods' cgroup class: "guaranteed", "burstable", "besteffort"

// What the whole pod requests of a resource: containers, sidecars and overhead, but at least its largest init container.
Quantity pod_request(const json::value& pod, std::string_view name);
std::set<std::string> huge_page_names(const json::value& pod);  // the resources "hugepages-<size>" that it requests

oci::Resources container_resources(const json::value& pod, const json::value& container, const runtime::Enforcement& enforcement);
int64_t cpu_shares_of(const json::value& pod);  // of the whole pod; at least 2
oci::Resources pod_resources(const json::value& pod, int64_t pids_max);
// How much an emptyDir of medium Memory may hold: the smallest of its sizeLimit, its pod's limit of memory, and the node's
// allocatable memory. 0: none of them is known. Source: kubelet, calculateEmptyDirMemorySize (semantics).
Bytes memory_volume_size(const json::value& pod, const json::value& volume, const json::object& allocatable);
int oom_score_adj(const json::value& pod, const json::value& container, Bytes machine_memory);

// The limits of this pod that the machine cannot enforce: "cpu, memory"; "" if it can enforce all.
std::string unenforceable(const json::value& pod, const runtime::Enforcement& enforcement);

struct Refusal {
  std::string reason, message;  // for the pod's status: "OutOfcpu"
};
// Why the node has no capacity for a pod beside `others`; nullopt if it fits.
std::optional<Refusal> refuse(const json::value& pod, const std::vector<ObjectPtr>& others, const json::object& allocatable,
                              int pods_max);

// Refuses a pod that sets a sysctl outside its own namespaces; nullopt if all are allowed.
std::optional<Refusal> refuse_sysctls(const json::value& pod);

}  // namespace coracle::node

// SPDX-License-Identifier: Apache-2.0
// What pods ask of the machine, in the kernel's units: quantities to shares, quotas and bytes, quality-of-service classes,
// and whether a pod still fits (the node's own check, after the scheduler's). Pure.
// Source: Kubernetes resource management for pods, QoS classes; kubelet's qos policy and admission (semantics, texts).
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

// resources.<list>.<name> of a container, if it says so.
std::optional<Quantity> resource_of(const json::value& container, std::string_view list, std::string_view name);
// What the whole pod requests of a resource: its containers, sidecars and overhead; at least its largest init container.
Quantity pod_request(const json::value& pod, std::string_view name);
std::set<std::string> huge_page_names(const json::value& pod);  // the resources "hugepages-<size>" that it asks for

oci::Resources container_resources(const json::value& pod, const json::value& container, const runtime::Enforcement& enforcement);
int64_t cpu_shares_of(const json::value& pod);  // what the whole pod asks for; at least 2
oci::Resources pod_resources(const json::value& pod, int64_t pids_max);
int oom_score_adj(const json::value& pod, const json::value& container, Bytes machine_memory);

// Which of the limits that this pod asks for the machine cannot hold: "cpu, memory"; "" when it can hold them all.
std::string unenforceable(const json::value& pod, const runtime::Enforcement& enforcement);

struct Refusal {
  std::string reason, message;  // of the pod's status: "OutOfcpu"
};
// Why the node refuses a pod beside the pods that it has already, if it does.
std::optional<Refusal> refuse(const json::value& pod, const std::vector<ObjectPtr>& others, const json::object& allocatable,
                              int pods_max);

// Sysctls a pod may set: those that belong to its own namespaces. The refused one, if any.
std::optional<Refusal> refuse_sysctls(const json::value& pod);

}  // namespace coracle::node

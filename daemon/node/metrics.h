// SPDX-License-Identifier: Apache-2.0
// The objects of metrics.k8s.io for this machine: NodeMetrics of the node and PodMetrics of the pods with running containers.
// They are measured on request (meter.h) and not stored.
//   request ─▶ sandboxes of the runtime, pods of the table ─▶ meter ─▶ objects
// cpu is the average over `window`. memory is the working set: the usage without inactive page cache. If cgroups do not account
// memory, a container's memory is what its processes have mapped (Runtime::usage). Source: kubernetes/metrics v1beta1;
// metrics-server, kubelet's resource metrics (semantics).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "daemon/node/config.h"
#include "daemon/node/meter.h"
#include "daemon/node/pod_table.h"
#include "runtime/runtime.h"
#include "store/client/client.h"

namespace coracle::node {

class Metrics {
 public:
  Metrics(const AgentConfig& config, Client& client, runtime::Runtime& runtime, const PodTable& table, const Clock& clock,
          std::function<void(std::chrono::nanoseconds)> pause)
      : config_(config), client_(client), runtime_(runtime), table_(table), clock_(clock), meter_(clock, std::move(pause)) {}

  // The NodeMetrics of this machine if `name` is its name or "". Errors: errors of reading /proc.
  Result<std::vector<ObjectPtr>> nodes(const std::string& name);
  // The PodMetrics by namespace and name; "" matches all. `wanted`, if set, selects the pods to measure. Pods without running
  // containers are left out. Errors: the runtime's.
  Result<std::vector<ObjectPtr>> pods(const std::string& ns, const std::string& name,
                                      const std::function<bool(const Object& pod)>& wanted = {});

 private:
  const AgentConfig& config_;
  Client& client_;
  runtime::Runtime& runtime_;
  const PodTable& table_;
  const Clock& clock_;
  Meter meter_;
};

// The machine's usage, from the text of /proc/stat and /proc/meminfo: all CPU time except idle and iowait, and all memory that is
// not free except inactive page cache. Errors: internal if `stat` does not begin as it should.
Result<Reading> read_machine_use(const std::string& stat, const std::string& meminfo);

}  // namespace coracle::node

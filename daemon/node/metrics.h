// SPDX-License-Identifier: Apache-2.0
// What metrics.k8s.io shows of this machine: NodeMetrics of the node, PodMetrics of the pods whose containers run. Measured
// when it is asked for (meter.h), stored nowhere.
//   asked ─▶ sandboxes of the runtime, pods of the table ─▶ meter ─▶ objects
// cpu is the average over the span that `window` names. memory is the working set: what is held less the part of the page cache
// that nobody has used lately; of a container where cgroups do not count memory, what its processes have mapped
// (Runtime::usage). Source: kubernetes/metrics v1beta1; metrics-server, kubelet's resource metrics (semantics).
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

  // This machine's, if that is its name or any will do (""). Errors: what the kernel's files said.
  Result<std::vector<ObjectPtr>> nodes(const std::string& name);
  // By namespace and name; "": any. `wanted`, where there is one, chooses among the pods: others are not measured. A pod of which
  // nothing runs is not among them. Errors: the runtime's.
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

// What the machine has used, from the kernel's /proc/stat and /proc/meminfo: all but what was idle or waiting for a disk;
// all memory that is not free, less the page cache that nobody has used lately.
Result<Reading> read_machine_use(const std::string& stat, const std::string& meminfo);

}  // namespace coracle::node

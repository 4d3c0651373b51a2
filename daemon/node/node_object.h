// SPDX-License-Identifier: Apache-2.0
// The Node object and its Lease: what this machine is and can, kept level in the API. Made, compared, and written only when
// something differs; heartbeats are rare, since nobody else watches over a machine that is its own cluster.
// Source: Kubernetes core/v1 Node, NodeStatus; coordination/v1 Lease; kubelet's node status (semantics).
#pragma once

#include <optional>
#include <stop_token>
#include <string>

#include "daemon/node/config.h"
#include "runtime/base/guarded.h"
#include "runtime/runtime.h"
#include "store/client/client.h"

namespace coracle::node {

constexpr const char* kVersion = "v1.36.1+coracle";
constexpr std::chrono::minutes kLeaseRenewal{20};    // the lease is valid three times as long
constexpr std::chrono::minutes kConditionsCheck{5};  // memory, disk and processes are looked at so often

struct MachineFacts {  // as read from the machine; tests make their own
  int64_t cpus = 1, processes = 0, processes_max = 0;
  Bytes memory, memory_available, disk, disk_available;
  std::string arch, kernel_version, os_image, machine_id, system_uuid, boot_id;
};
MachineFacts read_machine(const AgentConfig& config);
Bytes memory_field(const std::string& meminfo, std::string_view name);  // of /proc/meminfo: "MemTotal:". 0: it is not there

json::object node_capacity(const AgentConfig& config, const MachineFacts& machine);
json::object node_allocatable(const AgentConfig& config, const MachineFacts& machine);
// The node as it is to be registered, and the status it is to have; `before` is the object in the API, whose transition
// times hold where nothing changed.
json::value make_node(const AgentConfig& config, const MachineFacts& machine);
json::object make_node_status(const AgentConfig& config, const MachineFacts& machine, const runtime::Enforcement& enforcement,
                              const std::vector<runtime::Image>& images, const json::value& before, WallTime now);

class NodeObject {
 public:
  NodeObject(const AgentConfig& config, Client& client, runtime::Runtime& runtime, const Clock& clock);

  // Brings the Node level: registers it, corrects labels and status. Errors: the API's.
  Result<void> refresh();
  Result<void> renew_lease();
  // Refreshes and renews until stopped, also whenever `touch` was called.
  void run(std::stop_token stop);
  void touch();          // images have changed
  void clock_was_set();  // the lease is renewed by the new time
  json::object allocatable() const;

 private:
  const AgentConfig& config_;
  Client& client_;
  runtime::Runtime& runtime_;
  const Clock& clock_;
  Guarded<MachineFacts> machine_;  // as read last
  struct News {
    bool touched = false, clock_set = false;
  };
  Guarded<News> news_;
};

}  // namespace coracle::node

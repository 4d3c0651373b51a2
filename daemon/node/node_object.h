// SPDX-License-Identifier: Apache-2.0
// The Node object and its Lease in the API. The status is written when something in it changes (pressure on memory, disk or
// processes is noticed within kHousekeeping) and as a heartbeat every kHeartbeat. The Lease is renewed every kLeaseRenewal. The
// registry recognizes renewals and heartbeats, and the store keeps them in memory instead of writing them to the disk. Source:
// Kubernetes core/v1 Node, NodeStatus, "Node heartbeats"; coordination/v1 Lease; kubelet's node status, eviction manager
// (semantics, intervals).
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>

#include "daemon/node/config.h"
#include "runtime/base/clock.h"
#include "runtime/base/guarded.h"
#include "runtime/runtime.h"
#include "store/client/client.h"

namespace coracle::node {

constexpr const char* kVersion = "v1.36.1+coracle";
constexpr std::chrono::seconds kLeaseRenewal{10}, kLeaseDuration{40};
constexpr std::chrono::seconds kHousekeeping{5};  // interval of reading memory, disk and processes
constexpr std::chrono::minutes kHeartbeat{5};     // interval of writing the whole status
constexpr std::chrono::minutes kPressureHeld{5};  // pressure ends when it was not observed for so long

struct Pressure {
  bool memory = false, disk = false, processes = false;
  bool operator==(const Pressure&) const = default;
};

struct MachineInfo {  // state of the machine; tests supply their own
  int64_t cpus = 1, processes = 0, processes_max = 0;
  Bytes memory, memory_available, disk, disk_available;
  std::optional<Bytes> pods_memory;         // limit of all pods together; nullopt: no limit
  Pressure held;                            // pressure observed within the last kPressureHeld; still reported
  std::map<std::string, Bytes> huge_pages;  // reserved, by resource name: "hugepages-2Mi"
  std::string arch, kernel_version, os_image, machine_id, system_uuid, boot_id;
};
MachineInfo read_machine(const AgentConfig& config);
void read_load(const AgentConfig& config, MachineInfo& info);           // the values that change often: memory, processes, disk
Pressure pressure_on(const MachineInfo& info);                          // observed now, or held
Bytes memory_field(const std::string& meminfo, std::string_view name);  // of the text of /proc/meminfo: "MemTotal:". 0 if absent

// The extended resources that an administrator has added to the node's capacity ("example.com/dongle"); they are allocatable too.
// Source: Kubernetes, "Advertise Extended Resources for a Node".
json::object extended_resources(const json::value& node);
json::object node_capacity(const AgentConfig& config, const MachineInfo& machine, const json::object& extended = {});
json::object node_allocatable(const AgentConfig& config, const MachineInfo& machine, const json::object& extended = {});
// The Node object to create, and the status to write. `before` is the object in the API; transition times of unchanged conditions
// are taken from it.
json::value make_node(const AgentConfig& config, const MachineInfo& machine);
json::object make_node_status(const AgentConfig& config, const MachineInfo& machine, const runtime::Enforcement& enforcement,
                              const std::vector<runtime::Image>& images, const json::value& before, WallTime now);

class NodeObject {
 public:
  using ReadLoad = std::function<void(MachineInfo& info)>;
  // `read_load` absent: read_load() of this file.
  NodeObject(const AgentConfig& config, Client& client, runtime::Runtime& runtime, const Clock& clock, ReadLoad read_load = {});

  // Creates or updates the Node: labels and status. Errors: the API's.
  Result<void> refresh();
  Result<void> renew_lease();
  // One pass of `run`. Refreshes the Node if pressure has begun or ended, if the memory limit of the pods has changed, if a
  // heartbeat is due, or after `touch` or `clock_was_set`. Renews the Lease if that is due. Errors: the API's; a failed write
  // stays due.
  Result<void> housekeep();
  // Calls housekeep() every kHousekeeping, and at once after touch(), until stopped. Calls `beside` in each pass.
  void run(std::stop_token stop, const std::function<void()>& beside = {});
  void touch();                                // call when images have changed
  void clock_was_set();                        // rewrites the times in the status and in the Lease
  void node_changed(const json::value& node);  // the Node has changed in the API. Does not block
  json::object allocatable() const;

 private:
  const AgentConfig& config_;
  Client& client_;
  runtime::Runtime& runtime_;
  const Clock& clock_;
  const ReadLoad read_load_;
  Guarded<MachineInfo> machine_;    // as last read
  Guarded<json::object> extended_;  // extended resources of the Node as last read
  struct News {
    bool touched = false, clock_set = false;
  };
  Guarded<News> news_;

  MachineInfo read_machine_info() const;

  // ---- used by the thread of run() only ----
  void hold(MachineInfo& info);
  std::optional<SteadyTime> memory_low_at_, disk_low_at_, processes_low_at_;  // when each was last observed
  std::optional<Pressure> told_;                                              // as written to the status
  std::optional<SteadyTime> told_at_, renewed_at_;
  bool refresh_due_ = true;
};

}  // namespace coracle::node

// SPDX-License-Identifier: Apache-2.0
// The Node object and its Lease: what this machine is and can, kept level in the API. The status is written when something of it
// differs, pressure on memory, disk or processes within kHousekeeping, and as a heartbeat every kHeartbeat; the lease is renewed
// all the time. Renewals and heartbeats stay in memory: the registry knows them, and the store keeps them from the disk.
// Source: Kubernetes core/v1 Node, NodeStatus, "Node heartbeats"; coordination/v1 Lease; kubelet's node status, eviction
// manager (semantics, intervals).
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
constexpr std::chrono::seconds kHousekeeping{5};  // memory, disk and processes are looked at so often
constexpr std::chrono::minutes kHeartbeat{5};     // the whole status is told again
constexpr std::chrono::minutes kPressureHeld{5};  // pressure is over when it was not seen for so long

struct Pressure {
  bool memory = false, disk = false, processes = false;
  bool operator==(const Pressure&) const = default;
};

struct MachineFacts {  // as read from the machine; tests make their own
  int64_t cpus = 1, processes = 0, processes_max = 0;
  Bytes memory, memory_available, disk, disk_available;
  std::optional<Bytes> pods_memory;         // that all pods together may hold; nothing: no bound
  Pressure held;                            // that was there a short time ago, and counts still
  std::map<std::string, Bytes> huge_pages;  // reserved, by the resource's name: "hugepages-2Mi"
  std::string arch, kernel_version, os_image, machine_id, system_uuid, boot_id;
};
MachineFacts read_machine(const AgentConfig& config);
void read_load(const AgentConfig& config, MachineFacts& facts);         // what changes all the time: memory, processes, disk
Pressure pressure_on(const MachineFacts& facts);                        // now, and what is held
Bytes memory_field(const std::string& meminfo, std::string_view name);  // of /proc/meminfo: "MemTotal:". 0: it is not there

// The extended resources that somebody put into the node's capacity ("example.com/dongle"): they are to be allocated like others.
// Source: Kubernetes, "Advertise Extended Resources for a Node".
json::object extended_resources(const json::value& node);
json::object node_capacity(const AgentConfig& config, const MachineFacts& machine, const json::object& extended = {});
json::object node_allocatable(const AgentConfig& config, const MachineFacts& machine, const json::object& extended = {});
// The node as it is to be registered, and the status it is to have; `before` is the object in the API, whose transition
// times hold where nothing changed.
json::value make_node(const AgentConfig& config, const MachineFacts& machine);
json::object make_node_status(const AgentConfig& config, const MachineFacts& machine, const runtime::Enforcement& enforcement,
                              const std::vector<runtime::Image>& images, const json::value& before, WallTime now);

class NodeObject {
 public:
  using ReadLoad = std::function<void(MachineFacts& facts)>;
  // `read_load` absent: the machine's.
  NodeObject(const AgentConfig& config, Client& client, runtime::Runtime& runtime, const Clock& clock, ReadLoad read_load = {});

  // Brings the Node level: registers it, corrects labels and status. Errors: the API's.
  Result<void> refresh();
  Result<void> renew_lease();
  // One round of `run`: refreshes when pressure has begun or ended, when the pods' bound of memory is another, when a heartbeat
  // is due, and when `touch` or `clock_was_set` asked for it; renews the lease when that is due. Errors: the API's; what failed
  // is due again.
  Result<void> housekeep();
  // Does so every kHousekeeping, and when asked, until stopped. `beside` is called in each round.
  void run(std::stop_token stop, const std::function<void()>& beside = {});
  void touch();                                // images have changed
  void clock_was_set();                        // the lease is renewed by the new time
  void node_changed(const json::value& node);  // in the API, whoever did it. Does not block
  json::object allocatable() const;

 private:
  const AgentConfig& config_;
  Client& client_;
  runtime::Runtime& runtime_;
  const Clock& clock_;
  const ReadLoad read_load_;
  Guarded<MachineFacts> machine_;   // as read last
  Guarded<json::object> extended_;  // resources of the node as it was read last
  struct News {
    bool touched = false, clock_set = false;
  };
  Guarded<News> news_;

  MachineFacts read_facts() const;

  // ---- the thread's own ----
  void hold(MachineFacts& facts);
  std::optional<SteadyTime> memory_low_at_, disk_low_at_, processes_low_at_;  // seen last
  std::optional<Pressure> told_;                                              // in the status, by us
  std::optional<SteadyTime> told_at_, renewed_at_;
  bool refresh_due_ = true;
};

}  // namespace coracle::node

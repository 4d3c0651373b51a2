// SPDX-License-Identifier: Apache-2.0
// PodNetwork: a veth per pod, the pods' addresses, and the routes to them.
//
//   pod: eth0 10.244.0.5/32, default via 10.244.0.1 ──veth── coracle0af40005: route 10.244.0.5/32 ─▶ routing, nftables ─▶ …
//   machine: coracle0, a bridge without ports: 10.244.0.1 and the DNS address
//
// Pods are routed, not bridged: every packet of a pod, also to another pod, passes the machine's routing, where NAT and filtering
// see both directions of each flow. Bridged traffic skips nftables unless br_netfilter is loaded. Not every kernel has that
// module, and it defeats port isolation. With a bridge, a pod that connects to its own Service would need hairpin mode, and a pod
// with CAP_NET_RAW could spoof other pods. With one veth per pod, both ends have fixed neighbour entries, ARP is not needed, and
// packets with other source addresses are dropped (pod_guard.h).
// Interfaces, addresses and routes that were removed by hand are restored: LinkMonitor reports the loss, and restore_links()
// repairs it. The bridge without ports is used like a dummy interface, because some kernels lack the module for those.
//
// A pod's interface is removed by the kernel together with its namespace. The name of its other end is its address in
// hexadecimal, so an interface that still exists shows that its address is not free yet. Source: Kubernetes network model;
// veth(4); kernel Documentation/networking/ip-sysctl.rst.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "daemon/network/address_pool.h"
#include "daemon/network/attachment.h"
#include "daemon/network/pod_guard.h"
#include "runtime/base/fd.h"
#include "runtime/base/guarded.h"

namespace coracle::network {

inline constexpr const char* kPodLinkName = "eth0";
inline constexpr const char* kLinkAlias = "coracle";  // ifalias of the daemon's interfaces; only those are removed

struct PodNetworkConfig {
  Ipv4Range pods, services;
  Ipv4 dns;
  std::string run_dir;  // /run/coracle/network
};

class PodNetwork {
 public:
  // Creates or finds the bridge, enables IP forwarding, reads the records and creates the guard's tables. Errors: with the failed
  // step.
  static Result<std::unique_ptr<PodNetwork>> open(const PodNetworkConfig& config);

  // Gives the namespace an interface and an address, and returns the address. Idempotent: returns the existing address.
  // Thread-safe; blocks about a millisecond. Errors: unavailable if no address is free; the kernel's.
  Result<Ipv4> attach(const std::string& sandbox, const Fd& netns, std::vector<HostPort> host_ports);
  // The namespace and its interface are about to be removed: the interface is not restored until the sandbox is attached again.
  void expect_loss(const std::string& sandbox);
  // Releases the address. The kernel removes the interface with the namespace.
  Result<void> detach(const std::string& sandbox);
  Ipv4 address_of(const std::string& sandbox) const;  // empty if it is not attached
  std::vector<PodPort> host_ports() const;
  bool is_lost(const std::string& link) const;  // whether an attached pod lacks the interface of this name, if it does not exist

  // Restores the machine's side of the network: the bridge, its addresses and routes, and veths that are down. Returns the
  // sandboxes whose veth is gone; they must be attached again. Changes nothing if nothing is missing. Errors: the kernel's.
  Result<std::vector<std::string>> restore_links();
  // Creates the guard's tables anew, for the pods that are attached. Errors: the kernel's.
  Result<void> restore_guard();

  Ipv4 gateway() const;

  // Removes all interfaces of the daemon, and disables IP forwarding if the daemon has enabled it. Errors: the kernel's.
  static Result<void> cleanup(const std::string& run_dir);

 private:
  struct State {
    explicit State(Ipv4Range range) : pool(range) {}
    AddressPool pool;
    std::map<std::string, Attachment> attachments;
    std::set<std::string> leaving;  // sandboxes whose interfaces may disappear
  };

  PodNetwork(const PodNetworkConfig& config, uint32_t mtu)
      : config_(config), records_(config.run_dir + "/attachments"), mtu_(mtu), state_(config.pods) {}
  Result<void> restore();
  Result<Attachment> reserve(const std::string& sandbox, std::vector<HostPort> host_ports);
  Result<void> create_veth(const Attachment& attachment, const Fd& netns);
  std::vector<Ipv4> attached() const;
  Result<void> remove_veth(Ipv4 address);

  PodNetworkConfig config_;
  AttachmentRecords records_;
  uint32_t mtu_;
  PodGuard guard_;
  std::atomic<bool> guarded_ = false;  // the guard's tables were created
  Guarded<State> state_;
};

}  // namespace coracle::network

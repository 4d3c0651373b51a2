// SPDX-License-Identifier: Apache-2.0
// PodNetwork: a veth per pod, the pods' addresses, the routes to them.
//
//   pod: eth0 10.244.0.5/32, default via 10.244.0.1 ──veth── coracle0af40005: route 10.244.0.5/32 ─▶ routing, nftables ─▶ …
//   machine: coracle0 10.244.0.1 and the DNS address: an anchor for what has no wire
//
// Pods are routed, not bridged: every packet of a pod, to its neighbour too, goes through the machine's routing, where
// translation and filtering see both directions of every flow. On a bridge they would only with br_netfilter, which one
// machine has and the next has not, and which undoes port isolation; a pod that opens a Service of its own would need
// hairpin mode; and a pod with CAP_NET_RAW could pose as its neighbours. Here each pod has a wire of its own, on which both
// ends know each other's MAC address from the start, nothing is asked by ARP, and what does not bear the pod's own addresses is
// dropped (pod_guard.h).
// What somebody removes by hand comes back: restore_links() makes good what LinkMonitor has told of.
// The anchor is a bridge without ports: what a dummy interface would be, where the kernel has no module for it.
//
// A pod's interface goes away with its namespace: the kernel does that faster than we could. The name of its other end is
// its address in hexadecimal, so an interface that is still there shows that its address is not free yet.
// Source: Kubernetes network model; veth(4); kernel Documentation/networking/ip-sysctl.rst.
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
inline constexpr const char* kLinkAlias = "coracle";  // marks our links, so that nobody else's are ever removed

struct PodNetworkConfig {
  Ipv4Range pods, services;
  Ipv4 dns;
  std::string run_dir;  // /run/coracle/network
};

class PodNetwork {
 public:
  // Makes or finds the anchor, turns forwarding on, reads the records, makes the guard's tables. Errors: with the step named.
  static Result<std::unique_ptr<PodNetwork>> open(const PodNetworkConfig& config);

  // Gives the namespace an interface and an address; asked again it answers again. Returns the address.
  // Thread-safe; blocks about a millisecond. Errors: unavailable when no address is free; what the kernel said.
  Result<Ipv4> attach(const std::string& sandbox, const Fd& netns, std::vector<HostPort> host_ports);
  // The namespace is about to go, and the interface with it: nothing of it is to be put back until it is attached again.
  void expect_loss(const std::string& sandbox);
  // Gives the address back. The interface is the kernel's to remove, with the namespace.
  Result<void> detach(const std::string& sandbox);
  Ipv4 address_of(const std::string& sandbox) const;  // none when it is not attached
  std::vector<PodPort> host_ports() const;
  bool is_lost(const std::string& link) const;  // whether a link of this name, if it is gone, is missing to an attached pod

  // Makes good what was taken from the machine's side of the network: the anchor, its addresses and routes, wires that are down.
  // Returns the sandboxes whose wire is gone as a whole; they are to be attached again. Changes nothing where nothing is missing.
  Result<std::vector<std::string>> restore_links();
  // The same for the tables that guard the pods' addresses.
  Result<void> restore_guard();

  Ipv4 gateway() const;

  // Removes every link of ours and, when we turned it on, forwarding.
  static Result<void> cleanup(const std::string& run_dir);

 private:
  struct State {
    explicit State(Ipv4Range range) : pool(range) {}
    AddressPool pool;
    std::map<std::string, Attachment> attachments;
    std::set<std::string> leaving;  // sandboxes whose links may go
  };

  PodNetwork(const PodNetworkConfig& config, uint32_t mtu)
      : config_(config), records_(config.run_dir + "/attachments"), mtu_(mtu), state_(config.pods) {}
  Result<void> restore();
  Result<Attachment> reserve(const std::string& sandbox, std::vector<HostPort> host_ports);
  Result<void> plug(const Attachment& attachment, const Fd& netns);
  std::vector<Ipv4> attached() const;
  Result<void> unplug(Ipv4 address);

  PodNetworkConfig config_;
  AttachmentRecords records_;
  uint32_t mtu_;
  PodGuard guard_;
  std::atomic<bool> guarded_ = false;  // the guard's tables could be made
  Guarded<State> state_;
};

}  // namespace coracle::network

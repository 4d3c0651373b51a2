// SPDX-License-Identifier: Apache-2.0
// Network: the pod network, the service proxy and the cluster DNS. Owned by the daemon, used by the node agent.
//
//   node ── attach/detach ─▶ PodNetwork (veth, addresses, routes)
//   informers ─▶ ServiceProxy (thread "network": nftables)      informers ─▶ DnsServer (thread "dns")
//
// Order: open (before the informers start) ▸ start ▸ informers' start … ▸ stop. The kernel objects stay when the daemon ends, so
// that pods keep their connections during an upgrade. cleanup() removes them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "daemon/event/recorder.h"
#include "daemon/informer/informer.h"
#include "daemon/network/address.h"
#include "daemon/network/proxy.h"
#include "runtime/base/fd.h"
#include "store/client/client.h"
#include "store/kinds/default_ranges.h"

namespace coracle::network {

struct Config {
  std::string pod_cidr = kinds::kDefaultPodCidr;  // the first address is the gateway
  std::string service_cidr = kinds::kDefaultServiceCidr;
  std::string dns_address = kinds::kDefaultDnsAddress;  // in service_cidr
  std::string domain = "cluster.local";
  std::string run_dir = "/run/coracle/network";
  std::string resolv_conf = "/etc/resolv.conf";  // the upstream servers of the DNS server
  uint16_t api_port = 0;                         // the API's port on this machine's addresses; no Service or pod may take it
  std::string pods_cgroup;                       // the directory of the pods' cgroups in cgroup v2; "": not known
};

class Network {
 public:
  // The ranges and addresses alone, without changing anything. Errors: invalid, after the name of the setting: "podCIDR: …".
  static Result<void> check(const Config& config);
  // Creates the bridge and binds the DNS server. Adds handlers and indexes to the informers, which must not have started and must
  // outlive the network. `events` receives an event for each external address of a Service that is ignored; it must outlive the
  // network and may be null. Errors: invalid with the setting's name; the kernel's errors with the failed step.
  static Result<std::unique_ptr<Network>> open(const Config& config, Informer& services, Informer& endpoint_slices,
                                               Informer& pods, EventSink* events = nullptr);
  ~Network();

  // Called on the thread "network"; they must be fast. An empty one is not called.
  struct Callbacks {
    std::function<void()> rules_applied;  // the answers of serves() may have changed
    // The sandbox's interface is gone although it was not detached. attach() then gives the sandbox the same address.
    std::function<void(const std::string& sandbox)> lost_link;
  };
  void start(Callbacks callbacks = {});  // starts the threads
  void stop();

  // Gives a sandbox's namespace its interface and addresses (IPv4 first; at present exactly one). Idempotent: returns the
  // existing addresses. Thread-safe. Blocks about a millisecond and never waits for the proxy. Errors: unavailable if no address
  // is free.
  Result<std::vector<std::string>> attach(const std::string& sandbox, const Fd& netns, const std::vector<HostPort>& ports);
  // The conflicts of these host ports with programs that listen on the machine (in the network namespace of the calling thread),
  // worded for events.
  static std::vector<std::string> contested(const std::vector<HostPort>& ports);
  void expect_loss(const std::string& sandbox);                          // its namespace and interface are about to be removed
  Result<void> detach(const std::string& sandbox);                       // succeeds if it is not attached
  std::vector<std::string> addresses(const std::string& sandbox) const;  // empty if it is not attached

  // Whether the Service rules that are applied, or are about to be, send new connections to the address as a ready
  // endpoint. Does not block.
  bool serves(const std::string& address) const;

  // Creates the Service kube-dns in kube-system when that namespace exists. Failures are only logged: pods do not need the
  // Service, because resolv.conf contains the address.
  void publish_dns(Client& client);

  std::string dns_address() const;  // for pods' resolv.conf
  std::string domain() const;
  std::string gateway_address() const;  // the machine's address in the pod network

  // Blocks until the rules reflect the informers' caches as of this call. For tests and benchmarks. Errors: timeout.
  Result<void> wait_applied(std::chrono::milliseconds longest);

  // Removes all kernel objects and the content of run_dir. For uninstallation, while no daemon runs. Errors: the
  // kernel's, with the step that failed.
  static Result<void> cleanup(const Config& config);

 private:
  struct State;
  explicit Network(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace coracle::network

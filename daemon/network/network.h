// SPDX-License-Identifier: Apache-2.0
// Network: all that lets pods be reached by address and by name, for main to hold and for the node agent to use.
//
//   node ── attach/detach ─▶ PodNetwork (veth, addresses, routes)
//   informers ─▶ ServiceProxy (thread "network": nftables)      informers ─▶ DnsServer (thread "dns")
//
// Order: open (before the informers are started) ▸ start ▸ informers' start … ▸ stop. What it made in the kernel stays when
// the daemon ends: pods keep their connections while it is upgraded. cleanup() takes it away.
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

namespace coracle::network {

struct Config {
  std::string pod_cidr = "10.244.0.0/24";  // at most 253 pods; the first address is the gateway's
  std::string service_cidr = "10.96.0.0/16";
  std::string dns_address = "10.96.0.10";  // within service_cidr
  std::string domain = "cluster.local";
  std::string run_dir = "/run/coracle/network";
  std::string resolv_conf = "/etc/resolv.conf";  // whom the DNS server asks
  uint16_t api_port = 0;                         // of the API on this machine's addresses: no Service's, no pod's
};

class Network {
 public:
  // Makes the anchor interface and binds the DNS server. The informers are not started yet and outlive it; it adds handlers and
  // indexes to them. `events`, which outlives it, is told which external addresses of Services are ignored; null: nobody is.
  // Errors: invalid with the setting named, and what the kernel said with the step named.
  static Result<std::unique_ptr<Network>> open(const Config& config, Informer& services, Informer& endpoint_slices,
                                               Informer& pods, EventSink* events = nullptr);
  ~Network();
  void start();  // the threads
  void stop();

  // Gives a sandbox's namespace its interface and addresses (IPv4 first; now exactly one). Asked again, answers the same.
  // Thread-safe, blocks about a millisecond, never waits for the proxy. Errors: unavailable when no address is free.
  Result<std::vector<std::string>> attach(const std::string& sandbox, const Fd& netns, const std::vector<HostPort>& ports);
  // What these host ports take from programs of the calling thread's machine that listen there, worded for events.
  static std::vector<std::string> contested(const std::vector<HostPort>& ports);
  void expect_loss(const std::string& sandbox);                          // its namespace is about to go, with its link
  Result<void> detach(const std::string& sandbox);                       // succeeds when it was not attached
  std::vector<std::string> addresses(const std::string& sandbox) const;  // empty when not attached

  // Whether Services send new connections to the address, a ready endpoint, by the rules that are in the kernel now
  // or about to be. Does not block. `applied`, set before start: called whenever that may have changed, from the thread
  // "network"; short.
  bool serves(const std::string& address) const;
  void on_rules(std::function<void()> applied);

  // Before start. Called when the link of an attached sandbox is gone though nobody detached it, from the thread "network";
  // short. To attach it again gives it the address that it had.
  void on_lost_link(std::function<void(const std::string& sandbox)> lost);

  // Shows the DNS server as the Service kube-dns in kube-system, once that namespace is there. What goes wrong is logged:
  // pods find the server without it.
  void publish_dns(Client& client);

  std::string dns_address() const;  // for pods' resolv.conf
  std::string domain() const;
  std::string gateway_address() const;  // this machine, as its pods see it

  // For tests and benchmarks: until the rules hold what the informers held at the call. Errors: timeout.
  Result<void> wait_applied(std::chrono::milliseconds longest);

  // Removes everything of ours from the kernel and from run_dir. For uninstall, with no daemon running.
  static Result<void> cleanup(const Config& config);

 private:
  struct State;
  explicit Network(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace coracle::network

// SPDX-License-Identifier: Apache-2.0
// ServiceProxy: a thread that keeps the kernel's rules in line with Services, EndpointSlices and host ports.
//
//   informers ──names of Services──▶ thread: plan_change (pure) ▶ Firewall::apply_part
//   attach/detach, what may concern others ──▶ plan_proxy (pure) ▶ Firewall::apply ▶ delete UDP flows to removed endpoints
//
// A single change is applied at once, many changes at most every kProxyIntervalMin; no caller waits. A change of few Services
// costs the same among thousands. The thread also listens for kernel notifications: when the machine's tables were flushed, or
// interfaces, addresses or routes were removed, it restores them. The kernel does not notify of new listeners: while a Service
// has an external address or a node port, the thread looks for them every kLookInterval.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include "daemon/informer/informer.h"
#include "daemon/network/proxy.h"
#include "runtime/sys/netlink.h"

namespace coracle::network {

inline constexpr std::chrono::milliseconds kProxyIntervalMin{50};
inline constexpr std::chrono::milliseconds kRestoreIntervalMin{200};  // limits the CPU use if another program keeps removing them
inline constexpr std::chrono::seconds kProxyRetry{5};                 // after a failure
inline constexpr std::chrono::seconds kLookInterval{5};
inline constexpr size_t kFewServices = 256;  // more that change at once are planned together with all others

struct ServiceProxyConfig {
  Ipv4Range pods, services;
  Ipv4 dns;
  uint16_t dns_port = kDnsPort;
  std::function<std::vector<PodPort>()> host_ports;
  uint16_t api_port = 0;
  // Restore the machine's side of the pod network, and the rules that guard the pods' addresses. Called on the thread. May be
  // null.
  std::function<Result<void>(const sys::LossMonitor::News& lost)> restore_links;
  std::function<Result<void>()> restore_guard;
  // Called for each external address or node port of a Service that is rejected, once while that lasts. `reason` is the event's.
  // May be null.
  std::function<void(const Object& service, const char* reason, const std::string& message)> ignored;
  std::string pods_cgroup;  // directory of the pods' cgroups in cgroup v2; "": not known
};

class ServiceProxy {
 public:
  // Adds its handlers to the informers, which must not have started and must outlive it. Errors: the kernel's.
  static Result<std::unique_ptr<ServiceProxy>> open(ServiceProxyConfig config, Informer& services, Informer& slices);
  ~ServiceProxy();
  void start(std::function<void()> applied = {});  // `applied`: called on the thread after rules were applied; must be fast
  void stop();
  bool serves(Ipv4 address) const;  // as a ready endpoint, by the applied rules or by those about to be applied
  void wake();                      // something beside Services has changed; does not block
  // Blocks until the rules reflect the state at the time of this call. Errors: timeout after `longest`.
  Result<void> wait_applied(std::chrono::milliseconds longest);

 private:
  void wake_for(std::set<std::string> services);  // "ns/name" of those that have changed
  struct State;
  explicit ServiceProxy(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace coracle::network

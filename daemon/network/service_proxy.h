// SPDX-License-Identifier: Apache-2.0
// ServiceProxy: the one thread that keeps the kernel's rules level with Services, EndpointSlices and host ports.
//
//   informers, attach/detach ──wake──▶ thread: plan_proxy (pure) ▶ Firewall::apply ▶ forget UDP flows to who is gone
//
// A change is applied at once, a flood of them at most every kProxyIntervalMin; nobody waits for it. It also hears, from the
// kernel, when somebody flushes the machine's tables or takes our links, their addresses or routes away, and has all put back.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "daemon/informer/informer.h"
#include "daemon/network/proxy.h"
#include "runtime/sys/netlink.h"

namespace coracle::network {

inline constexpr std::chrono::milliseconds kProxyIntervalMin{50};
inline constexpr std::chrono::milliseconds kRestoreIntervalMin{200};  // lest two who want opposite things keep a core busy
inline constexpr std::chrono::seconds kProxyRetry{5};                 // after a failure

struct ServiceProxyConfig {
  Ipv4Range pods, services;
  Ipv4 dns;
  uint16_t dns_port = kDnsPort;
  std::function<std::vector<PodPort>()> host_ports;
  uint16_t api_port = 0;
  // Put back what the machine's side of the pod network lost, and the rules that guard the pods' addresses. Called on the thread.
  // May be null.
  std::function<Result<void>(const sys::LossMonitor::News& lost)> restore_links;
  std::function<Result<void>()> restore_guard;
  // Told of each external address that a Service asks for and is not given, once for as long as that is so. May be null.
  std::function<void(const Object& service, const std::string& message)> ignored;
};

class ServiceProxy {
 public:
  // Adds its handlers to the informers, which are not started yet and outlive it.
  static Result<std::unique_ptr<ServiceProxy>> open(ServiceProxyConfig config, Informer& services, Informer& slices);
  ~ServiceProxy();
  void start();
  void stop();
  // Before start. Called by the thread whenever rules were applied; short.
  void on_applied(std::function<void()> applied);
  bool serves(Ipv4 address) const;  // as a ready endpoint, by the rules that are applied or by those that are to come
  void wake();                      // something has changed; does not block
  Result<void> wait_applied(std::chrono::milliseconds longest);  // until the rules hold what was there at the call

 private:
  struct State;
  explicit ServiceProxy(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace coracle::network

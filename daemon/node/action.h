// SPDX-License-Identifier: Apache-2.0
// Runs one attempt of a probe or a lifecycle hook: a command in the container, an HTTP request, a TCP connection, a gRPC health
// check or a sleep. The host sends the requests to the pod's address. Blocks until the timeout or stop at the longest. Source:
// Kubernetes core/v1 Probe and LifecycleHandler; kubelet's probers (semantics, texts); grpc health/v1.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "daemon/node/resolver.h"
#include "runtime/base/json.h"
#include "runtime/runtime.h"
#include "store/schema/views.h"

namespace coracle::node {

struct ActionTarget {
  std::string sandbox_id, container_id;
  std::string address;                     // the pod's; used when the handler names no host
  const json::value* container = nullptr;  // to resolve named ports
};

struct ActionResult {
  bool success = false;
  std::string text;  // the reason of a failure, as events show it; after a success: a warning, or ""
};

class Actions {
 public:
  // `ask` is passed to Resolver.
  explicit Actions(runtime::Runtime& runtime, Resolver::Ask ask = nullptr)
      : runtime_(runtime), resolver_(std::make_unique<Resolver>(std::move(ask))) {}

  // `handler` is a Probe or a LifecycleHandler: it has exec, httpGet, tcpSocket, grpc or sleep.
  ActionResult run(const json::value& handler, const ActionTarget& target, std::chrono::seconds timeout,
                   std::stop_token stop) const;

 private:
  ActionResult exec(view::ExecAction command, const ActionTarget& target, std::chrono::seconds timeout,
                    std::stop_token stop) const;
  runtime::Runtime& runtime_;
  const std::unique_ptr<Resolver> resolver_;
};

// The number of a port that is given by number or by name. Returns nullopt if the container has no such port.
std::optional<uint16_t> port_number(const json::value& port, const json::value* container);

}  // namespace coracle::node

// SPDX-License-Identifier: Apache-2.0
// Target: the destination of a request to a proxy subresource. Names have the form [http:|https:]name[:port]. A pod is reached at
// its address, a service at one of its ready pods, a node at its own address.
//   "https:web:443" ──split_name──▶ AskedName ──find_target (objects in the API)──▶ Target
// Addresses are numeric and come from objects. The checked address is the one that is connected to, so no name lookup can change
// it in between. Loopback, link-local (cloud metadata) and unspecified addresses are rejected. Source: Kubernetes registry
// core/pod, core/service, core/node (ResourceLocation); apimachinery util/net; CVE-2020-8562.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "daemon/registry/registry.h"
#include "runtime/sys/socket.h"

namespace coracle::api {

constexpr std::string_view kAgentPort = "10250";  // for a node whose status has no port

struct AskedName {
  std::string scheme, name, port;  // "" if not given; a service's port may be a name
  bool operator==(const AskedName&) const = default;
};
// nullopt: malformed.
std::optional<AskedName> split_name(std::string_view text);

struct Target {
  sys::Endpoint to;
  bool secure = false;  // TLS without verification, because pods have no known certificates
  std::string host;     // as in a URL: "10.42.0.7:8080", "[fd00::7]"
};

// False for loopback, link-local, multicast, broadcast and unspecified addresses, also if embedded in an IPv6 address.
bool may_be_reached(const std::string& address);

// `kind` is Pod, Service or Node; `id` is a name as above. Errors: bad_request (malformed name, or a rejected address),
// not_found, unavailable (the service has no such port or no ready pod), internal (the node has no address).
Result<Target> find_target(registry::Registry& registry, const Kind& kind, const std::string& ns, const std::string& id);

}  // namespace coracle::api

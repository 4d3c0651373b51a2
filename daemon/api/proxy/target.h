// SPDX-License-Identifier: Apache-2.0
// Target: where a request to a proxy subresource goes. Names are [http:|https:]name[:port]; a pod is reached at its address,
// a service at one of its ready pods, a node at its own address.
//   "https:web:443" ──split_name──▶ AskedName ──find_target (what the API knows)──▶ Target
// Addresses come from objects and are numbers; the one that was checked is the one that is connected to, so nothing can be
// renamed in between. A status that names the machine itself, its neighbourhood's metadata or nobody leads nowhere.
// Source: Kubernetes registry core/pod, core/service, core/node (ResourceLocation); apimachinery util/net; CVE-2020-8562.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "daemon/registry/registry.h"
#include "runtime/sys/socket.h"

namespace coracle::api {

constexpr std::string_view kAgentPort = "10250";  // of a node that names none

struct AskedName {
  std::string scheme, name, port;  // "" where it was not said; a service's port may be a name
  bool operator==(const AskedName&) const = default;
};
// Nothing: no such name can be.
std::optional<AskedName> split_name(std::string_view text);

struct Target {
  sys::Endpoint to;
  bool secure = false;  // TLS; whose certificate it is nobody can tell, for pods have none that are known
  std::string host;     // as a URL says it: "10.42.0.7:8080", "[fd00::7]"
};

// Neither loopback, link-local, multicast, broadcast nor nobody's, also when it hides in an IPv6 address.
bool may_be_reached(const std::string& address);

// `kind` is Pod, Service or Node, `id` the name as above. Errors: bad_request (no such name can be, an address that may not
// be reached), not_found, unavailable (a service without that port, or without a ready pod), internal (a node without address).
Result<Target> find_target(registry::Registry& registry, const Kind& kind, const std::string& ns, const std::string& id);

}  // namespace coracle::api

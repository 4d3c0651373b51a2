// SPDX-License-Identifier: Apache-2.0
// See target.h.
#include "daemon/api/proxy/target.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <random>

#include "runtime/base/random.h"
#include "runtime/base/text.h"
#include "store/object/object.h"
#include "store/object/status.h"
#include "store/schema/views.h"

namespace coracle::api {
namespace {

constexpr std::string_view kServiceNameLabel = "kubernetes.io/service-name";

Error no_such_name(const Kind& kind, const std::string& id) {
  return bad_request("invalid " + to_lower(kind.kind) + " request " + quoted(id));
}

// `port` may be empty: the scheme's default.
std::optional<Target> make_target(const AskedName& asked, const std::string& address, const std::string& port) {
  Target target;
  target.secure = asked.scheme == "https";
  auto number = parse_number<uint16_t>(port);
  if (!port.empty() && (!number || *number == 0)) return std::nullopt;
  target.to = {address, number.value_or(target.secure ? 443 : 80)};
  bool six = address.find(':') != address.npos;
  target.host = port.empty() ? (six ? "[" + address + "]" : address) : target.to.text();
  return target;
}

Result<Target> checked(const Kind& kind, const std::string& id, const AskedName& asked, const std::string& address,
                       const std::string& port) {
  if (!may_be_reached(address)) return bad_request("address not allowed");
  auto target = make_target(asked, address, port);
  if (!target) return no_such_name(kind, id);
  return *std::move(target);
}

std::string first_port(view::Pod pod) {
  for (view::Container container : pod.spec().containers())
    if (!container.ports().empty()) return std::to_string(container.ports()[0].container_port());
  return {};
}

bool has_address(view::Pod pod, std::string_view address) {
  auto all = pod.status().pod_ips();
  return std::any_of(all.begin(), all.end(), [&](view::PodIP one) { return one.ip() == address; });
}

// The name of the service port with the requested number, or the requested name.
Result<std::string> port_name(view::Service service, const AskedName& asked) {
  auto number = parse_number<int64_t>(asked.port);
  if (!number) return asked.port;
  for (view::ServicePort port : service.spec().ports())
    if (port.port() == *number) return std::string(port.name());
  return Error(Code::unavailable, "no service port " + std::to_string(*number) + " found for service " + quoted(asked.name));
}

// Whether the endpoint is ready and its address is that of a pod of this namespace, so that write access to EndpointSlices gives
// no access to other addresses.
bool is_of_a_pod(const registry::Registry& registry, const std::string& ns, view::Endpoint endpoint) {
  if (endpoint.conditions().has_ready() && !endpoint.conditions().ready()) return false;
  std::string name(endpoint.target_ref().name());
  if (endpoint.addresses().empty() || name.empty() || endpoint.target_ref().namespace_() != ns) return false;
  auto pod = registry.get(kPod, {ns, name});
  return pod && has_address(view::Pod(**pod), endpoint.addresses()[0]);
}

struct Backend {
  std::string address, port;
};

// A random endpoint of the slice.
std::optional<Backend> backend_in(const registry::Registry& registry, const Object& slice, const std::string& port,
                                  uint32_t random) {
  auto endpoints = view::EndpointSlice(slice).endpoints();
  for (view::DiscoveryEndpointPort offered : view::EndpointSlice(slice).ports()) {
    if (offered.name() != port || offered.port() <= 0) continue;
    for (size_t i = 0; i < endpoints.size(); i++) {
      view::Endpoint endpoint = endpoints[(i + random) % endpoints.size()];
      if (!is_of_a_pod(registry, slice.ns(), endpoint)) continue;
      return Backend{std::string(endpoint.addresses()[0]), std::to_string(offered.port())};
    }
  }
  return std::nullopt;
}

// The slices in random order, those of the service's first address family first.
Result<std::vector<ObjectPtr>> slices_of(registry::Registry& registry, const Object& service, std::minstd_rand& random) {
  engine::ListOptions options;
  options.ns = service.ns();
  options.matches = [name = service.name()](const Object& slice) {
    const json::value* label = slice.labels().if_contains(kServiceNameLabel);
    return label && label->is_string() && label->get_string() == name;
  };
  engine::ListPage page = TRY(registry.engine().list(kEndpointSlice, options));
  std::shuffle(page.items.begin(), page.items.end(), random);
  auto families = view::Service(service).spec().ip_families();
  std::string preferred(families.empty() ? std::string_view("IPv4") : families[0]);
  std::stable_partition(page.items.begin(), page.items.end(),
                        [&](const ObjectPtr& slice) { return view::EndpointSlice(*slice).address_type() == preferred; });
  return std::move(page.items);
}

Result<Target> pod_target(const registry::Registry& registry, const std::string& ns, const std::string& id,
                          const AskedName& asked) {
  ObjectPtr pod = TRY(registry.get(kPod, {ns, asked.name}));
  std::string address(view::Pod(*pod).status().pod_ip());
  return checked(kPod, id, asked, address, asked.port.empty() ? first_port(view::Pod(*pod)) : asked.port);
}

Result<Target> service_target(registry::Registry& registry, const std::string& ns, const std::string& id,
                              const AskedName& asked) {
  ObjectPtr service = TRY(registry.get(kService, {ns, asked.name}));
  std::string port = TRY(port_name(view::Service(*service), asked));
  std::minstd_rand random(random_below(UINT32_MAX));
  std::vector<ObjectPtr> slices = TRY(slices_of(registry, *service, random));
  for (const ObjectPtr& slice : slices)
    if (auto backend = backend_in(registry, *slice, port, uint32_t(random())))
      return checked(kService, id, asked, backend->address, backend->port);
  return Error(Code::unavailable, "no endpoints available for service " + quoted(asked.name));
}

// Without a port the target is the node's kubelet, with TLS.
Result<Target> node_target(const registry::Registry& registry, const std::string& id, AskedName asked) {
  ObjectPtr node = TRY(registry.get(kNode, {"", asked.name}));
  view::NodeStatus status = view::Node(*node).status();
  int64_t agent = status.daemon_endpoints().kubelet_endpoint().port();
  std::string agent_port = agent > 0 ? std::to_string(agent) : std::string(kAgentPort);
  if (asked.port.empty() || asked.port == agent_port) asked.scheme = "https", asked.port = agent_port;
  for (std::string_view type : {"InternalIP", "ExternalIP"})
    for (view::NodeAddress address : status.addresses())
      if (address.type() == type) return checked(kNode, id, asked, std::string(address.address()), asked.port);
  return storage_error("no preferred addresses found; known addresses: []");
}

}  // namespace

std::optional<AskedName> split_name(std::string_view text) {
  std::vector<std::string_view> parts = split(text, ':');
  AskedName asked;
  if (parts.size() > 3) return std::nullopt;
  if (parts.size() == 3) asked.scheme = parts[0];
  asked.name = parts[parts.size() == 3 ? 1 : 0];
  if (parts.size() > 1) asked.port = parts.back();
  bool known = asked.scheme.empty() || asked.scheme == "http" || asked.scheme == "https";
  if (asked.name.empty() || !known) return std::nullopt;
  return asked;
}

bool may_be_reached(const std::string& address) {
  std::array<unsigned char, 16> b{};
  if (::inet_pton(AF_INET, address.c_str(), &b[12]) == 1) {
    b[10] = b[11] = 0xff;
  } else if (::inet_pton(AF_INET6, address.c_str(), b.data()) != 1) {
    return false;
  }
  bool zeros = std::all_of(b.begin(), b.begin() + 10, [](unsigned char c) { return c == 0; });
  if (zeros && b[10] == 0xff && b[11] == 0xff) {  // IPv4, or IPv4-mapped IPv6
    bool nobody = std::all_of(b.begin() + 12, b.end(), [](unsigned char c) { return c == 0; });
    bool everybody = std::all_of(b.begin() + 12, b.end(), [](unsigned char c) { return c == 0xff; });
    bool loopback = b[12] == 127, link_local = b[12] == 169 && b[13] == 254, multicast = (b[12] & 0xf0) == 0xe0;
    // Linux treats "this network" (0.0.0.0/8) as the machine itself.
    return !nobody && !everybody && !loopback && !link_local && !multicast && b[12] != 0;
  }
  bool compatible = zeros && b[10] == 0 && b[11] == 0;  // ::, ::1 and the deprecated IPv4-compatible addresses
  bool link_local = b[0] == 0xfe && (b[1] & 0xc0) == 0x80;
  return !compatible && !link_local && b[0] != 0xff;
}

Result<Target> find_target(registry::Registry& registry, const Kind& kind, const std::string& ns, const std::string& id) {
  auto asked = split_name(id);
  if (!asked) return no_such_name(kind, id);
  if (kind == kPod) return pod_target(registry, ns, id, *asked);
  if (kind == kService) return service_target(registry, ns, id, *asked);
  return node_target(registry, id, *asked);
}

}  // namespace coracle::api

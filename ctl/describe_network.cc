// SPDX-License-Identifier: Apache-2.0
// How describe shows Services, endpoints, Ingresses and NetworkPolicies. See describe.h.
#include <algorithm>
#include <optional>

#include "ctl/describe.h"
#include "runtime/base/text.h"
#include "store/kinds/meta/metadata.h"

namespace coracle::ctl {
namespace {

constexpr size_t kEndpointsShown = 3;

std::string joined(view::Range<std::string_view> words, std::string_view separator) { return join(strings(words), separator); }

std::string host_port(const std::string& address, const std::string& port) {
  return (address.find(':') == address.npos ? address : "[" + address + "]") + ":" + port;
}

std::string number_of(view::DiscoveryEndpointPort port) { return port.has_port() ? std::to_string(port.port()) : ""; }

// The ready endpoints of the Service's port with that name.
std::string endpoints_text(const std::vector<json::value>& slices, std::string_view port_name) {
  if (slices.empty()) return "<none>";
  std::vector<std::string> shown;
  size_t count = 0;
  bool more = false;
  auto add = [&](view::EndpointSlice slice, std::optional<view::DiscoveryEndpointPort> port) {
    for (view::Endpoint endpoint : slice.endpoints()) {
      more = more || shown.size() == kEndpointsShown;
      if (!endpoint.conditions().ready_or(true) || endpoint.addresses().empty()) continue;
      ++count;
      std::string address(endpoint.addresses()[0]);
      if (!more) shown.push_back(port ? host_port(address, number_of(*port)) : address);
    }
  };
  for (const auto& one : slices) {
    view::EndpointSlice slice(one);
    if (slice.ports().empty()) add(slice, std::nullopt);  // a headless Service may have none
    for (view::DiscoveryEndpointPort port : slice.ports())
      if (port.name() == port_name) add(slice, port);
  }
  return join(shown, ",") + (more ? " + " + std::to_string(count - kEndpointsShown) + " more..." : "");
}

std::string balancer_text(view::Service service) {
  std::vector<std::string> parts;
  for (view::LoadBalancerIngress ingress : service.status().load_balancer().ingress()) {
    std::string ip(ingress.ip()), mode(ingress.ip_mode());
    parts.push_back(ip.empty() ? std::string(ingress.hostname()) : ip + (mode.empty() ? "" : " (" + mode + ")"));
  }
  return join(parts, ", ");
}

void put_unless_empty(std::string& text, std::string_view name, std::string_view value) {
  if (!value.empty()) put(text, 0, name, value);
}

std::string service_text(const json::value& object, const Related& related) {
  view::ServiceSpec spec = view::Service(object).spec();
  std::string text;
  put_head(text, object);
  put(text, 0, "Selector", map_text(spec.selector()));
  put(text, 0, "Type", spec.type());
  put_unless_empty(text, "IP Family Policy", spec.ip_family_policy());
  put(text, 0, "IP Families", or_else(joined(spec.ip_families(), ","), "<none>"));
  put(text, 0, "IP", spec.cluster_ip());
  put(text, 0, "IPs", or_else(joined(spec.cluster_ips(), ","), "<none>"));
  put_unless_empty(text, "External IPs", joined(spec.external_ips(), ","));
  put_unless_empty(text, "Desired LoadBalancer IP", spec.load_balancer_ip());
  put_unless_empty(text, "External Name", spec.external_name());
  put_unless_empty(text, "LoadBalancer Ingress", balancer_text(view::Service(object)));
  for (view::ServicePort port : spec.ports()) {
    std::string name(port.name()), protocol = "/" + std::string(port.protocol());
    put(text, 0, "Port", or_else(name, "<unset>") + "\t" + std::to_string(port.port()) + protocol);
    put(text, 0, "TargetPort", text_of_value(port.target_port()) + protocol);
    put_unless_empty(text, "AppProtocol", port.app_protocol());
    if (port.node_port()) put(text, 0, "NodePort", or_else(name, "<unset>") + "\t" + std::to_string(port.node_port()) + protocol);
    put(text, 0, "Endpoints",
        related.slices.error.empty() ? endpoints_text(related.slices.items, name) : unread_text(related.slices.error));
  }
  put(text, 0, "Session Affinity", spec.session_affinity());
  put_unless_empty(text, "External Traffic Policy", spec.external_traffic_policy());
  put_unless_empty(text, "Internal Traffic Policy", spec.internal_traffic_policy());
  if (spec.health_check_node_port()) put(text, 0, "HealthCheck NodePort", std::to_string(spec.health_check_node_port()));
  put_unless_empty(text, "LoadBalancer Source Ranges", joined(spec.load_balancer_source_ranges(), ","));
  put_unless_empty(text, "Traffic Distribution", spec.traffic_distribution());
  return text;
}

// ---- endpoints ----

void put_addresses(std::string& text, std::string_view label, view::Range<view::EndpointAddress> list) {
  std::vector<std::string> addresses;
  for (view::EndpointAddress address : list) addresses.emplace_back(address.ip());
  put(text, 1, label, or_else(join(addresses, ","), "<none>"));
}

std::string endpoints_object_text(const json::value& object) {
  std::string text;
  put_head(text, object);
  text += "Subsets:\n";
  for (view::EndpointSubset subset : view::Endpoints(object).subsets()) {
    put_addresses(text, "Addresses", subset.addresses());
    put_addresses(text, "NotReadyAddresses", subset.not_ready_addresses());
    if (!subset.ports().empty()) text += "  Ports:\n    Name\tPort\tProtocol\n    ----\t----\t--------\n";
    for (view::EndpointPort port : subset.ports())
      text += "    " + or_else(port.name(), "<unset>") + "\t" + std::to_string(port.port()) + "\t" +
              std::string(port.protocol()) + "\n";
    text += "\n";
  }
  return text;
}

std::string slice_text(const json::value& object) {
  view::EndpointSlice slice(object);
  std::string text;
  put_head(text, object);
  put(text, 0, "AddressType", slice.address_type());
  text += slice.ports().empty() ? "Ports: <unset>\n" : "Ports:\n  Name\tPort\tProtocol\n  ----\t----\t--------\n";
  for (view::DiscoveryEndpointPort port : slice.ports())
    text += "  " + or_else(port.name(), "<unset>") + "\t" + or_else(number_of(port), "<unset>") + "\t" +
            std::string(port.protocol()) + "\n";
  text += slice.endpoints().empty() ? "Endpoints: <none>\n" : "Endpoints:\n";
  for (view::Endpoint endpoint : slice.endpoints()) {
    put(text, 1, "- Addresses", or_else(joined(endpoint.addresses(), ", "), "<none>"));
    text += "    Conditions:\n";
    view::EndpointConditions conditions = endpoint.conditions();
    put(text, 3, "Ready", !conditions.has_ready() ? "<unset>" : conditions.ready() ? "true" : "false");
    put(text, 2, "Hostname", or_else(endpoint.hostname(), "<unset>"));
    if (view::ObjectReference target = endpoint.target_ref())
      put(text, 2, "TargetRef", std::string(target.kind()) + "/" + std::string(target.name()));
    put(text, 2, "NodeName", or_else(endpoint.node_name(), "<unset>"));
    put(text, 2, "Zone", or_else(endpoint.zone(), "<unset>"));
  }
  return text;
}

// ---- Ingress ----

std::string backend_text(view::IngressBackend backend, const Related& related) {
  if (view::TypedLocalObjectReference resource = backend.resource())
    return "APIGroup: " + or_else(resource.api_group(), "<none>") + ", Kind: " + std::string(resource.kind()) +
           ", Name: " + std::string(resource.name());
  view::IngressServiceBackend wanted = backend.service();
  if (!wanted) return {};
  int64_t number = wanted.port().number();
  std::string name(wanted.name()), port_name(wanted.port().name());
  std::string head = name + ":" + (number == 0 ? port_name : std::to_string(number));
  auto found = related.backends.find(name);
  if (found == related.backends.end()) return head;
  if (!found->second.error.empty()) return head + " (" + unread_text(found->second.error) + ")";
  std::string service_port;
  for (view::ServicePort port : view::Service(found->second.service).spec().ports())
    if ((number != 0 && number == port.port()) || (!port_name.empty() && port_name == port.name())) service_port = port.name();
  return head + " (" + endpoints_text(found->second.slices, service_port) + ")";
}

std::string ingress_text(const json::value& object, const Related& related) {
  view::Ingress ingress(object);
  view::IngressSpec spec = ingress.spec();
  std::string text;
  put(text, 0, "Name", ingress.metadata().name());
  put_labels(text, "Labels", ingress.metadata().labels());
  put(text, 0, "Namespace", ingress.metadata().namespace_());
  std::vector<std::string> addresses;
  for (view::IngressLoadBalancerIngress one : ingress.status().load_balancer().ingress())
    addresses.push_back(or_else(one.ip(), one.hostname()));
  std::erase(addresses, "");
  std::sort(addresses.begin(), addresses.end());
  addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());
  put(text, 0, "Address", join(addresses, ","));
  put(text, 0, "Ingress Class", or_else(spec.ingress_class_name(), "<none>"));
  std::string otherwise_text = spec.has_default_backend() ? backend_text(spec.default_backend(), related) : "<default>";
  put(text, 0, "Default backend", otherwise_text);
  if (!spec.tls().empty()) text += "TLS:\n";
  for (view::IngressTLS secret : spec.tls()) {
    std::string name(secret.secret_name());
    text += "  " + (name.empty() ? "SNI routes " : name + " terminates ") + joined(secret.hosts(), ",") + "\n";
  }
  text += "Rules:\n  Host\tPath\tBackends\n  ----\t----\t--------\n";
  bool any = false;
  for (view::IngressRule rule : spec.rules()) {
    if (!rule.has_http()) continue;
    any = true;
    text += "  " + or_else(rule.host(), "*") + "\t\n";
    for (view::HTTPIngressPath path : rule.http().paths())
      text += "    \t" + std::string(path.path()) + " \t" + backend_text(path.backend(), related) + "\n";
  }
  if (!any) text += "  *\t*\t" + otherwise_text + "\n";
  put_annotations(text, "Annotations", ingress.metadata().annotations());
  return text;
}

std::string ingress_class_text(const json::value& object) {
  view::IngressClassSpec spec = view::IngressClass(object).spec();
  std::string text;
  put_head(text, object);
  put(text, 0, "Controller", spec.controller());
  if (view::IngressClassParametersReference parameters = spec.parameters()) {
    text += "Parameters:\n";
    if (parameters.has_api_group()) put(text, 1, "APIGroup", parameters.api_group());
    put(text, 1, "Kind", parameters.kind());
    put(text, 1, "Name", parameters.name());
  }
  return text;
}

// ---- NetworkPolicy ----

// As Go's String() of a time: "2026-11-29 17:16:11 +0000 UTC".
std::string go_time_text(std::string_view time) { return local_time_text(time, "%Y-%m-%d %H:%M:%S %z %Z"); }

void put_policy_ports(std::string& text, view::Range<view::NetworkPolicyPort> ports) {
  if (ports.empty()) text += "    To Port: <any> (traffic allowed to all ports)\n";
  for (view::NetworkPolicyPort port : ports) {
    std::string number = or_else(text_of_value(port.port()), "<nil>");
    text += (port.has_end_port() ? "    To Port Range: " + number + "-" + std::to_string(port.end_port())
                                 : "    To Port: " + number) +
            "/" + or_else(port.protocol(), "TCP") + "\n";
  }
}

void put_policy_peers(std::string& text, view::Range<view::NetworkPolicyPeer> peers, const std::string& direction) {
  for (view::NetworkPolicyPeer peer : peers) {
    text += "    " + direction + ":\n";
    view::LabelSelector namespaces = peer.namespace_selector(), pods = peer.pod_selector();
    if (namespaces) text += "      NamespaceSelector: " + selector_or(namespaces, "<none>") + "\n";
    if (pods) text += "      PodSelector: " + selector_or(pods, "<none>") + "\n";
    view::IPBlock block = peer.ip_block();
    if (namespaces || pods || !block) continue;
    text +=
        "      IPBlock:\n        CIDR: " + std::string(block.cidr()) + "\n        Except: " + joined(block.except(), ", ") + "\n";
  }
}

struct PolicyDirection {
  const char *type, *word, *name, *nobody;
};
constexpr PolicyDirection kIngressDirection = {"Ingress", "From", "ingress", "From: <any> (traffic not restricted by source)"},
                          kEgressDirection = {"Egress", "To", "egress", "To: <any> (traffic not restricted by destination)"};

// `peers`: the field of a rule with the peers.
template <typename Rule>
void put_policy_rules(std::string& text, view::NetworkPolicySpec spec, const PolicyDirection& direction, view::Range<Rule> rules,
                      view::Range<view::NetworkPolicyPeer> (Rule::*peers)() const) {
  view::Range<std::string_view> types = spec.policy_types();
  if (std::find(types.begin(), types.end(), direction.type) == types.end()) {
    text += std::string("  Not affecting ") + direction.name + " traffic\n";
    return;
  }
  text += std::string("  Allowing ") + direction.name + " traffic:\n";
  if (rules.empty()) text += std::string("    <none> (Selected pods are isolated for ") + direction.name + " connectivity)\n";
  bool first = true;
  for (Rule rule : rules) {
    if (!std::exchange(first, false)) text += "    ----------\n";
    put_policy_ports(text, rule.ports());
    view::Range<view::NetworkPolicyPeer> those = (rule.*peers)();
    if (those.empty()) text += std::string("    ") + direction.nobody + "\n";
    put_policy_peers(text, those, direction.word);
  }
}

std::string policy_text(const json::value& object) {
  view::ObjectMeta metadata = metadata_of(object);
  view::NetworkPolicySpec spec = view::NetworkPolicy(object).spec();
  std::string text;
  put(text, 0, "Name", metadata.name());
  put(text, 0, "Namespace", metadata.namespace_());
  put(text, 0, "Created on", go_time_text(metadata.creation_timestamp()));
  put_marks(text, object);
  text += "Spec:\n  PodSelector:     " +
          selector_or(spec.pod_selector(), "<none> (Allowing the specific traffic to all pods in this namespace)") + "\n";
  put_policy_rules(text, spec, kIngressDirection, spec.ingress(), &view::NetworkPolicyIngressRule::from);
  put_policy_rules(text, spec, kEgressDirection, spec.egress(), &view::NetworkPolicyEgressRule::to);
  return text + "  Policy Types: " + or_else(joined(spec.policy_types(), ", "), "<none>") + "\n";
}

// ---- addresses ----

std::string service_range_text(const json::value& object) {
  view::ServiceCIDR range(object);
  std::string text;
  put_head(text, object);
  put(text, 0, "CIDRs", joined(range.spec().cidrs(), ", "));
  if (!range.status().conditions().empty()) text += "Status:\n";
  put_conditions_with_time(text, object);
  return text;
}

std::string address_text(const json::value& object) {
  std::string text;
  put_head(text, object);
  if (view::ParentReference parent = view::IPAddress(object).spec().parent_ref()) {
    text += "Parent Reference:\n";
    put(text, 1, "Group", parent.group());
    put(text, 1, "Resource", parent.resource());
    put(text, 1, "Namespace", parent.namespace_());
    put(text, 1, "Name", parent.name());
  }
  return text;
}

}  // namespace

std::string network_text(const json::value& object, const Related& related) {
  std::string_view kind = kind_in(object);
  if (kind == "Service") return service_text(object, related);
  if (kind == "Endpoints") return endpoints_object_text(object);
  if (kind == "EndpointSlice") return slice_text(object);
  if (kind == "Ingress") return ingress_text(object, related);
  if (kind == "IngressClass") return ingress_class_text(object);
  if (kind == "NetworkPolicy") return policy_text(object);
  if (kind == "ServiceCIDR") return service_range_text(object);
  if (kind == "IPAddress") return address_text(object);
  return {};
}

}  // namespace coracle::ctl

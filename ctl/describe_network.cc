// SPDX-License-Identifier: Apache-2.0
// How describe shows Services, endpoints, Ingresses and NetworkPolicies. See describe.h.
#include <algorithm>

#include "ctl/describe.h"
#include "ctl/jsonpath.h"
#include "runtime/base/text.h"
#include "store/kinds/meta/metadata.h"

namespace coracle::ctl {
namespace {

constexpr size_t kEndpointsShown = 3;

std::string joined_list(const json::value& object, std::string_view path, std::string_view separator) {
  std::vector<std::string> words;
  for (const auto& word : get_array(object, path)) words.push_back(jsonpath_text(word));
  return join(words, separator);
}

std::string host_port(const std::string& address, const std::string& port) {
  return (address.find(':') == address.npos ? address : "[" + address + "]") + ":" + port;
}

// The ready endpoints of the Service's port with that name.
std::string endpoints_text(const std::vector<json::value>& slices, std::string_view port_name) {
  if (slices.empty()) return "<none>";
  std::vector<std::string> shown;
  size_t count = 0;
  bool more = false;
  auto add = [&](const json::value& slice, const json::value* port) {
    for (const auto& endpoint : get_array(slice, "endpoints")) {
      more = more || shown.size() == kEndpointsShown;
      const json::array& addresses = get_array(endpoint, "addresses");
      if (!get_bool(endpoint, "conditions.ready", true) || addresses.empty()) continue;
      ++count;
      std::string address = jsonpath_text(addresses.front());
      if (!more) shown.push_back(port ? host_port(address, text_at(*port, "port")) : address);
    }
  };
  for (const auto& slice : slices) {
    const json::array& ports = get_array(slice, "ports");
    if (ports.empty()) add(slice, nullptr);  // a headless Service may have none
    for (const auto& port : ports)
      if (get_string(port, "name") == port_name) add(slice, &port);
  }
  return join(shown, ",") + (more ? " + " + std::to_string(count - kEndpointsShown) + " more..." : "");
}

std::string balancer_text(const json::value& service) {
  std::vector<std::string> parts;
  for (const auto& ingress : get_array(service, "status.loadBalancer.ingress")) {
    std::string ip = text_at(ingress, "ip"), mode = text_at(ingress, "ipMode");
    parts.push_back(ip.empty() ? text_at(ingress, "hostname") : ip + (mode.empty() ? "" : " (" + mode + ")"));
  }
  return join(parts, ", ");
}

void put_unless_empty(std::string& text, std::string_view name, const std::string& value) {
  if (!value.empty()) put(text, 0, name, value);
}

std::string service_text(const json::value& service, const Related& related) {
  std::string text;
  put_head(text, service);
  put(text, 0, "Selector", map_text(get_object(service, "spec.selector")));
  put(text, 0, "Type", text_at(service, "spec.type"));
  put_unless_empty(text, "IP Family Policy", text_at(service, "spec.ipFamilyPolicy"));
  put(text, 0, "IP Families", or_else(joined_list(service, "spec.ipFamilies", ","), "<none>"));
  put(text, 0, "IP", text_at(service, "spec.clusterIP"));
  put(text, 0, "IPs", or_else(joined_list(service, "spec.clusterIPs", ","), "<none>"));
  put_unless_empty(text, "External IPs", joined_list(service, "spec.externalIPs", ","));
  put_unless_empty(text, "Desired LoadBalancer IP", text_at(service, "spec.loadBalancerIP"));
  put_unless_empty(text, "External Name", text_at(service, "spec.externalName"));
  put_unless_empty(text, "LoadBalancer Ingress", balancer_text(service));
  for (const auto& port : get_array(service, "spec.ports")) {
    std::string name = text_at(port, "name"), protocol = "/" + text_at(port, "protocol");
    put(text, 0, "Port", or_else(name, "<unset>") + "\t" + text_at(port, "port") + protocol);
    put(text, 0, "TargetPort", text_at(port, "targetPort") + protocol);
    if (get_int(port, "nodePort"))
      put(text, 0, "NodePort", or_else(name, "<unset>") + "\t" + text_at(port, "nodePort") + protocol);
    put(text, 0, "Endpoints",
        related.slices.error.empty() ? endpoints_text(related.slices.items, name) : unread_text(related.slices.error));
  }
  put(text, 0, "Session Affinity", text_at(service, "spec.sessionAffinity"));
  put_unless_empty(text, "External Traffic Policy", text_at(service, "spec.externalTrafficPolicy"));
  put_unless_empty(text, "Internal Traffic Policy", text_at(service, "spec.internalTrafficPolicy"));
  if (get_int(service, "spec.healthCheckNodePort"))
    put(text, 0, "HealthCheck NodePort", text_at(service, "spec.healthCheckNodePort"));
  put_unless_empty(text, "LoadBalancer Source Ranges", joined_list(service, "spec.loadBalancerSourceRanges", ","));
  put_unless_empty(text, "Traffic Distribution", text_at(service, "spec.trafficDistribution"));
  return text;
}

// ---- endpoints ----

std::string endpoints_object_text(const json::value& object) {
  std::string text;
  put_head(text, object);
  text += "Subsets:\n";
  for (const auto& subset : get_array(object, "subsets")) {
    for (auto [field, label] : {std::pair{"addresses", "Addresses"}, std::pair{"notReadyAddresses", "NotReadyAddresses"}}) {
      std::vector<std::string> addresses;
      for (const auto& address : get_array(subset, field)) addresses.push_back(text_at(address, "ip"));
      put(text, 1, label, or_else(join(addresses, ","), "<none>"));
    }
    const json::array& ports = get_array(subset, "ports");
    if (!ports.empty()) text += "  Ports:\n    Name\tPort\tProtocol\n    ----\t----\t--------\n";
    for (const auto& port : ports)
      text += "    " + or_else(text_at(port, "name"), "<unset>") + "\t" + text_at(port, "port") + "\t" +
              text_at(port, "protocol") + "\n";
    text += "\n";
  }
  return text;
}

std::string slice_text(const json::value& slice) {
  std::string text;
  put_head(text, slice);
  put(text, 0, "AddressType", text_at(slice, "addressType"));
  const json::array &ports = get_array(slice, "ports"), &endpoints = get_array(slice, "endpoints");
  text += ports.empty() ? "Ports: <unset>\n" : "Ports:\n  Name\tPort\tProtocol\n  ----\t----\t--------\n";
  for (const auto& port : ports)
    text += "  " + or_else(text_at(port, "name"), "<unset>") + "\t" + or_else(text_at(port, "port"), "<unset>") + "\t" +
            text_at(port, "protocol") + "\n";
  text += endpoints.empty() ? "Endpoints: <none>\n" : "Endpoints:\n";
  for (const auto& endpoint : endpoints) {
    put(text, 1, "- Addresses", or_else(joined_list(endpoint, "addresses", ", "), "<none>"));
    text += "    Conditions:\n";
    put(text, 3, "Ready", or_else(text_at(endpoint, "conditions.ready"), "<unset>"));
    put(text, 2, "Hostname", or_else(text_at(endpoint, "hostname"), "<unset>"));
    if (find(endpoint, "targetRef"))
      put(text, 2, "TargetRef", text_at(endpoint, "targetRef.kind") + "/" + text_at(endpoint, "targetRef.name"));
    put(text, 2, "NodeName", or_else(text_at(endpoint, "nodeName"), "<unset>"));
    put(text, 2, "Zone", or_else(text_at(endpoint, "zone"), "<unset>"));
  }
  return text;
}

// ---- Ingress ----

std::string backend_text(const json::value& backend, const Related& related) {
  if (const json::value* resource = find(backend, "resource"))
    return "APIGroup: " + or_else(text_at(*resource, "apiGroup"), "<none>") + ", Kind: " + text_at(*resource, "kind") +
           ", Name: " + text_at(*resource, "name");
  const json::value* wanted = find(backend, "service");
  if (!wanted) return {};
  std::string name = text_at(*wanted, "name"), number = text_at(*wanted, "port.number"),
              port_name = text_at(*wanted, "port.name");
  std::string head = name + ":" + (number.empty() || number == "0" ? port_name : number);
  auto found = related.backends.find(name);
  if (found == related.backends.end()) return head;
  if (!found->second.error.empty()) return head + " (" + unread_text(found->second.error) + ")";
  std::string service_port;
  for (const auto& port : get_array(found->second.service, "spec.ports"))
    if ((!number.empty() && number == text_at(port, "port")) || (!port_name.empty() && port_name == text_at(port, "name")))
      service_port = text_at(port, "name");
  return head + " (" + endpoints_text(found->second.slices, service_port) + ")";
}

std::string ingress_text(const json::value& ingress, const Related& related) {
  std::string text;
  put(text, 0, "Name", text_at(ingress, "metadata.name"));
  put_labels(text, "Labels", get_object(ingress, "metadata.labels"));
  put(text, 0, "Namespace", text_at(ingress, "metadata.namespace"));
  std::vector<std::string> addresses;
  for (const auto& one : get_array(ingress, "status.loadBalancer.ingress"))
    addresses.push_back(or_else(text_at(one, "ip"), text_at(one, "hostname")));
  std::erase(addresses, "");
  std::sort(addresses.begin(), addresses.end());
  addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());
  put(text, 0, "Address", join(addresses, ","));
  put(text, 0, "Ingress Class", or_else(text_at(ingress, "spec.ingressClassName"), "<none>"));
  const json::value* otherwise = find(ingress, "spec.defaultBackend");
  std::string otherwise_text = otherwise ? backend_text(*otherwise, related) : "<default>";
  put(text, 0, "Default backend", otherwise_text);
  const json::array& secrets = get_array(ingress, "spec.tls");
  if (!secrets.empty()) text += "TLS:\n";
  for (const auto& secret : secrets) {
    std::string name = text_at(secret, "secretName");
    text += "  " + (name.empty() ? "SNI routes " : name + " terminates ") + joined_list(secret, "hosts", ",") + "\n";
  }
  text += "Rules:\n  Host\tPath\tBackends\n  ----\t----\t--------\n";
  bool any = false;
  for (const auto& rule : get_array(ingress, "spec.rules")) {
    if (!find(rule, "http")) continue;
    any = true;
    text += "  " + or_else(text_at(rule, "host"), "*") + "\t\n";
    for (const auto& path : get_array(rule, "http.paths")) {
      const json::value* backend = find(path, "backend");
      text += "    \t" + text_at(path, "path") + " \t" + (backend ? backend_text(*backend, related) : "") + "\n";
    }
  }
  if (!any) text += "  *\t*\t" + otherwise_text + "\n";
  put_annotations(text, "Annotations", get_object(ingress, "metadata.annotations"));
  return text;
}

std::string ingress_class_text(const json::value& object) {
  std::string text;
  put_head(text, object);
  put(text, 0, "Controller", text_at(object, "spec.controller"));
  if (const json::value* parameters = find(object, "spec.parameters")) {
    text += "Parameters:\n";
    if (find(*parameters, "apiGroup")) put(text, 1, "APIGroup", text_at(*parameters, "apiGroup"));
    put(text, 1, "Kind", text_at(*parameters, "kind"));
    put(text, 1, "Name", text_at(*parameters, "name"));
  }
  return text;
}

// ---- NetworkPolicy ----

// As Go's String() of a time: "2026-11-29 17:16:11 +0000 UTC".
std::string go_time_text(std::string_view time) { return local_time_text(time, "%Y-%m-%d %H:%M:%S %z %Z"); }

void put_policy_ports(std::string& text, const json::array& ports) {
  if (ports.empty()) text += "    To Port: <any> (traffic allowed to all ports)\n";
  for (const auto& port : ports) {
    std::string number = or_else(text_at(port, "port"), "<nil>"), last = text_at(port, "endPort");
    text += (last.empty() ? "    To Port: " + number : "    To Port Range: " + number + "-" + last) + "/" +
            or_else(text_at(port, "protocol"), "TCP") + "\n";
  }
}

void put_policy_peers(std::string& text, const json::array& peers, const std::string& direction) {
  for (const auto& peer : peers) {
    text += "    " + direction + ":\n";
    for (auto [field, label] : {std::pair{"namespaceSelector", "NamespaceSelector"}, std::pair{"podSelector", "PodSelector"}})
      if (find(peer, field)) text += "      " + std::string(label) + ": " + selector_or(peer, field, "<none>") + "\n";
    if (find(peer, "namespaceSelector") || find(peer, "podSelector") || !find(peer, "ipBlock")) continue;
    text += "      IPBlock:\n        CIDR: " + text_at(peer, "ipBlock.cidr") +
            "\n        Except: " + joined_list(peer, "ipBlock.except", ", ") + "\n";
  }
}

struct PolicyDirection {
  const char *type, *rules, *peers, *word, *name, *nobody;
};
constexpr PolicyDirection kPolicyDirections[] = {
    {"Ingress", "spec.ingress", "from", "From", "ingress", "From: <any> (traffic not restricted by source)"},
    {"Egress", "spec.egress", "to", "To", "egress", "To: <any> (traffic not restricted by destination)"}};

void put_policy_rules(std::string& text, const json::value& policy, const PolicyDirection& direction) {
  const json::array& types = get_array(policy, "spec.policyTypes");
  bool affected =
      std::any_of(types.begin(), types.end(), [&](const auto& type) { return jsonpath_text(type) == direction.type; });
  if (!affected) {
    text += std::string("  Not affecting ") + direction.name + " traffic\n";
    return;
  }
  text += std::string("  Allowing ") + direction.name + " traffic:\n";
  const json::array& rules = get_array(policy, direction.rules);
  if (rules.empty()) text += std::string("    <none> (Selected pods are isolated for ") + direction.name + " connectivity)\n";
  for (const auto& rule : rules) {
    if (&rule != rules.data()) text += "    ----------\n";
    put_policy_ports(text, get_array(rule, "ports"));
    const json::array& peers = get_array(rule, direction.peers);
    if (peers.empty()) text += std::string("    ") + direction.nobody + "\n";
    put_policy_peers(text, peers, direction.word);
  }
}

std::string policy_text(const json::value& policy) {
  std::string text;
  put(text, 0, "Name", text_at(policy, "metadata.name"));
  put(text, 0, "Namespace", text_at(policy, "metadata.namespace"));
  put(text, 0, "Created on", go_time_text(text_at(policy, "metadata.creationTimestamp")));
  put_marks(text, policy);
  std::string selector = selector_or(policy, "spec.podSelector", "");
  text +=
      "Spec:\n  PodSelector:     " + or_else(selector, "<none> (Allowing the specific traffic to all pods in this namespace)") +
      "\n";
  for (const auto& direction : kPolicyDirections) put_policy_rules(text, policy, direction);
  return text + "  Policy Types: " + or_else(joined_list(policy, "spec.policyTypes", ", "), "<none>") + "\n";
}

// ---- addresses ----

std::string service_range_text(const json::value& range) {
  std::string text;
  put_head(text, range);
  put(text, 0, "CIDRs", joined_list(range, "spec.cidrs", ", "));
  if (!get_array(range, "status.conditions").empty()) text += "Status:\n";
  put_conditions_with_time(text, range);
  return text;
}

std::string address_text(const json::value& address) {
  std::string text;
  put_head(text, address);
  if (const json::value* parent = find(address, "spec.parentRef")) {
    text += "Parent Reference:\n";
    for (auto [field, label] : {std::pair{"group", "Group"}, std::pair{"resource", "Resource"},
                                std::pair{"namespace", "Namespace"}, std::pair{"name", "Name"}})
      put(text, 1, label, text_at(*parent, field));
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

// SPDX-License-Identifier: Apache-2.0
// Validation of Endpoints and EndpointSlices. Source: core/v1 and discovery.k8s.io/v1 API references.
#include <set>

#include "store/kinds/service/service_kinds.h"
#include "store/schema/validate/syntax.h"
#include "store/schema/views.h"

namespace coracle::schema {
namespace {

constexpr size_t kEndpointsMax = 1000, kAddressesMax = 100;

void check_address(const json::value& value, const std::string& path, Findings& out) {
  view::EndpointAddress address(value);
  if (address.ip().empty()) return;
  if (!is_ip(address.ip())) out.invalid(sub(path, "ip"), address.ip(), kNotAnIp);
  else check_not_special(out, sub(path, "ip"), address.ip());
  if (!address.hostname().empty())
    out.invalid_all(sub(path, "hostname"), address.hostname(), dns_label_problems(address.hostname()));
}

void check_subset(const json::value& value, const std::string& path, Findings& out) {
  view::EndpointSubset subset(value);
  if (subset.addresses().empty() && subset.not_ready_addresses().empty()) {
    out.required(path, "must specify `addresses` or `notReadyAddresses`");
  }
  for (size_t i = 0; i < subset.ports().size(); ++i) {
    view::EndpointPort port = subset.ports()[i];
    std::string at = item(sub(path, "ports"), i);
    if (port.name().empty() && subset.ports().size() > 1) out.required(sub(at, "name"));
    if (!port.name().empty()) out.invalid_all(sub(at, "name"), port.name(), dns_label_problems(port.name()));
    check_port_number(out, sub(at, "port"), port.port());
  }
}

void check_slice(const json::value& value, const std::string&, Findings& out) {
  view::EndpointSlice slice(value);
  if (slice.endpoints().size() > kEndpointsMax) {
    out.too_many("endpoints", slice.endpoints().size(), kEndpointsMax);
    return;
  }
  for (size_t i = 0; i < slice.endpoints().size(); ++i) {
    view::Endpoint endpoint = slice.endpoints()[i];
    std::string at = item("endpoints", i);
    if (endpoint.has_hostname())
      out.invalid_all(sub(at, "hostname"), endpoint.hostname(), dns_label_problems(endpoint.hostname()));
    if (endpoint.has_node_name())
      out.invalid_all(sub(at, "nodeName"), endpoint.node_name(), dns_subdomain_problems(endpoint.node_name()));
    if (endpoint.addresses().size() > kAddressesMax) {
      out.too_many(sub(at, "addresses"), endpoint.addresses().size(), kAddressesMax);
    }
    for (size_t j = 0; j < endpoint.addresses().size(); ++j) {
      std::string_view address = endpoint.addresses()[j];
      std::string here = item(sub(at, "addresses"), j);
      if (slice.address_type() == "FQDN") out.invalid_all(here, address, dns_subdomain_problems(address));
      else if (!is_ip(address) || (address.find(':') != address.npos) != (slice.address_type() == "IPv6"))
        out.invalid(here, address, kNotAnIp);
      else check_not_special(out, here, address);
    }
  }
  std::set<std::string_view> names;
  for (size_t i = 0; i < slice.ports().size(); ++i) {
    view::DiscoveryEndpointPort port = slice.ports()[i];
    std::string at = item("ports", i);
    if (!names.insert(port.name()).second) out.duplicate(sub(at, "name"), port.name());
    if (!port.name().empty()) out.invalid_all(sub(at, "name"), port.name(), dns_label_problems(port.name()));
    if (port.has_port()) check_port_number(out, sub(at, "port"), port.port());
  }
}

constexpr NamedValidationRule kEndpointsChecks[] = {
    {"io.k8s.api.core.v1.EndpointAddress", check_address},
    {"io.k8s.api.core.v1.EndpointSubset", check_subset},
    {"io.k8s.api.discovery.v1.EndpointSlice", check_slice},
};

}  // namespace

std::span<const NamedValidationRule> endpoints_rules() { return kEndpointsChecks; }

void check_slice_update(const json::value& now, const json::value& before, std::string_view, Findings& out) {
  check_immutable(out, "addressType", view::EndpointSlice(now).address_type(), view::EndpointSlice(before).address_type());
}

}  // namespace coracle::schema

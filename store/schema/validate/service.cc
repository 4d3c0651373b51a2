// SPDX-License-Identifier: Apache-2.0
// Validation of services. Whether an address or node port is free is the registry's to know, not ours.
// Source: core/v1 API reference, Service.
#include <set>

#include "store/schema/validate/findings.h"
#include "store/schema/views.h"

namespace coracle::schema {
namespace {

constexpr std::string_view kNoIp = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
constexpr int64_t kAffinitySecondsMax = 86400;

void check_ports(view::ServiceSpec spec, const std::string& path, Findings& out) {
  bool headless = spec.cluster_ip() == "None";
  if (spec.ports().empty() && !headless && spec.type() != "ExternalName") out.required(sub(path, "ports"));
  std::set<std::string_view> names;
  std::set<std::string> numbers;
  for (size_t i = 0; i < spec.ports().size(); ++i) {
    view::ServicePort port = spec.ports()[i];
    std::string at = item(sub(path, "ports"), i);
    if (port.name().empty() && spec.ports().size() > 1) out.required(sub(at, "name"));
    if (!port.name().empty()) out.invalid_all(sub(at, "name"), port.name(), dns_label_problems(port.name()));
    if (!port.name().empty() && !names.insert(port.name()).second) out.duplicate(sub(at, "name"), port.name());
    check_port_number(out, sub(at, "port"), port.port());
    check_port_or_name(out, sub(at, "targetPort"), port.target_port());
    std::string number = std::string(port.protocol()) + "/" + std::to_string(port.port());
    if (!numbers.insert(number).second) out.duplicate(at, number);
    if (port.node_port() == 0) continue;
    check_port_number(out, sub(at, "nodePort"), port.node_port());
    if (spec.type() == "ClusterIP") out.forbidden(sub(at, "nodePort"), "may not be used when `type` is 'ClusterIP'");
  }
}

void check_addresses(view::ServiceSpec spec, const std::string& path, Findings& out) {
  for (size_t i = 0; i < spec.cluster_ips().size(); ++i) {
    std::string_view address = spec.cluster_ips()[i];
    std::string at = item(sub(path, "clusterIPs"), i);
    if (i == 0 && address != spec.cluster_ip()) out.invalid_json(sub(path, "clusterIPs"), *find(spec.raw(), "clusterIPs"), "first value must match `clusterIP`");
    if (address == "None" && spec.cluster_ips().size() > 1) out.invalid(at, address, "'None' must be the first and only value");
    if (address != "None" && !is_ip(address)) out.invalid(at, address, kNoIp);
  }
  if (spec.cluster_ip() == "None" && (spec.type() == "NodePort" || spec.type() == "LoadBalancer")) {
    out.invalid(sub(path, "clusterIPs[0]"), spec.cluster_ip(), "may not be set to 'None' for " + std::string(spec.type()) + " services");
  }
  for (size_t i = 0; i < spec.external_ips().size(); ++i) {
    if (!is_ip(spec.external_ips()[i])) out.invalid(item(sub(path, "externalIPs"), i), spec.external_ips()[i], kNoIp);
  }
}

void check_service_spec(const json::value& value, const std::string& path, Findings& out) {
  view::ServiceSpec spec(value);
  check_ports(spec, path, out);
  check_addresses(spec, path, out);
  check_labels(out, sub(path, "selector"), spec.selector());
  if (spec.type() == "ExternalName") {
    std::string_view name = spec.external_name();
    if (name.ends_with('.')) name.remove_suffix(1);
    if (name.empty()) out.required(sub(path, "externalName"));
    else out.invalid_all(sub(path, "externalName"), spec.external_name(), dns_subdomain_problems(name));
    if (!spec.cluster_ip().empty() && spec.cluster_ip() != "None") {
      out.forbidden(sub(path, "clusterIPs[0]"), "may not be set when `type` is 'ExternalName'");
    }
  }
  if (spec.session_affinity() == "ClientIP") {
    view::ClientIPConfig config = spec.session_affinity_config().client_ip();
    std::string at = sub(path, "sessionAffinityConfig.clientIP.timeoutSeconds");
    if (config.timeout_seconds() <= 0 || config.timeout_seconds() > kAffinitySecondsMax) {
      out.invalid(at, config.timeout_seconds(), "must be greater than 0 and less than 86400");
    }
  }
  bool outside = spec.type() == "NodePort" || spec.type() == "LoadBalancer" || (spec.type() == "ClusterIP" && !spec.external_ips().empty());
  if (!outside && !spec.external_traffic_policy().empty()) {
    out.invalid(sub(path, "externalTrafficPolicy"), spec.external_traffic_policy(), "may only be set for externally-accessible services");
  }
}

constexpr NamedValidationRule kRules[] = {{"io.k8s.api.core.v1.ServiceSpec", check_service_spec}};

}  // namespace

std::span<const NamedValidationRule> service_rules() { return kRules; }

void check_service_update(const json::value& now, const json::value& before, std::string_view, Findings& out) {
  view::ServiceSpec spec = view::Service(now).spec(), old = view::Service(before).spec();
  bool both_have_addresses = spec.type() != "ExternalName" && old.type() != "ExternalName";
  if (!both_have_addresses || old.cluster_ip().empty() || spec.cluster_ip() == old.cluster_ip()) return;
  out.invalid_json("spec.clusterIPs[0]", json::array{json::value(spec.cluster_ip())}, "may not change once set");
}

}  // namespace coracle::schema

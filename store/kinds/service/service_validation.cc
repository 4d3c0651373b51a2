// SPDX-License-Identifier: Apache-2.0
// Validation of services. The registry checks whether an address or node port is free. Source: core/v1 API reference, Service.
#include <set>

#include "runtime/base/text.h"
#include "store/kinds/service/service_kinds.h"
#include "store/kinds/service/source_ranges.h"
#include "store/schema/validate/syntax.h"
#include "store/schema/views.h"

namespace coracle::schema {
namespace {

constexpr int64_t kAffinitySecondsMax = 86400;

void check_service_ports(view::ServiceSpec spec, const std::string& path, Findings& out) {
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
    if (port.has_app_protocol())
      out.invalid_all(sub(at, "appProtocol"), port.app_protocol(), qualified_name_problems(port.app_protocol()));
    std::string number = std::string(port.protocol()) + "/" + std::to_string(port.port());
    if (!numbers.insert(number).second) {
      out.duplicate_json(at, json::object{{"Name", ""},
                                          {"Protocol", port.protocol()},
                                          {"AppProtocol", nullptr},
                                          {"Port", port.port()},
                                          {"TargetPort", 0},
                                          {"NodePort", 0}});
    }
    if (port.node_port() == 0) continue;
    check_port_number(out, sub(at, "nodePort"), port.node_port());
    if (spec.type() == "ClusterIP") out.forbidden(sub(at, "nodePort"), "may not be used when `type` is 'ClusterIP'");
  }
}

// Checks an address at which a service is reachable from outside. Kubernetes accepts some of these. Here the machine itself would
// answer for them, and would receive broadcast and multicast traffic of others.
void check_reachable(Findings& out, const std::string& path, std::string_view ip) {
  check_not_special(out, path, ip);
  bool link_local = ip.starts_with("224.0.0.") || ip.starts_with("ff02:");  // reported already
  if (is_multicast(ip) && !link_local) out.invalid(path, ip, "may not be a multicast address (224.0.0.0/4, ff00::/8)");
  if (ip == "255.255.255.255") out.invalid(path, ip, "may not be the broadcast address");
}

void check_service_addresses(view::ServiceSpec spec, const std::string& path, Findings& out) {
  for (size_t i = 0; i < spec.cluster_ips().size(); ++i) {
    std::string_view address = spec.cluster_ips()[i];
    std::string at = item(sub(path, "clusterIPs"), i);
    if (i == 0 && address != spec.cluster_ip())
      out.invalid_json(sub(path, "clusterIPs"), spec.cluster_ips().raw(), "first value must match `clusterIP`");
    if (address == "None" && spec.cluster_ips().size() > 1) out.invalid(at, address, "'None' must be the first and only value");
    if (address != "None") out.invalid_all(at, address, ip_problems(address, false));
  }
  if (spec.ip_families().size() == 2 && spec.ip_families()[0] == spec.ip_families()[1])
    out.duplicate(sub(path, "ipFamilies[1]"), spec.ip_families()[1]);
  if (spec.cluster_ip() == "None" && (spec.type() == "NodePort" || spec.type() == "LoadBalancer")) {
    out.invalid(sub(path, "clusterIPs[0]"), spec.cluster_ip(),
                "may not be set to 'None' for " + std::string(spec.type()) + " services");
  }
  for (size_t i = 0; i < spec.external_ips().size(); ++i) {
    std::string at = item(sub(path, "externalIPs"), i);
    std::vector<std::string> problems = ip_problems(spec.external_ips()[i], false);
    out.invalid_all(at, spec.external_ips()[i], problems);
    if (problems.empty()) check_reachable(out, at, spec.external_ips()[i]);
  }
}

constexpr std::string_view kBalancersOnly = "may only be used when `type` is 'LoadBalancer'";

// Fields that only apply to load balancers.
void check_balancer(view::ServiceSpec spec, const std::string& path, Findings& out) {
  bool balanced = spec.type() == "LoadBalancer";
  if (!balanced && !spec.load_balancer_source_ranges().empty())
    out.forbidden(sub(path, "loadBalancerSourceRanges"), kBalancersOnly);
  for (size_t i = 0; balanced && i < spec.load_balancer_source_ranges().size(); ++i) {
    std::string range(trim(spec.load_balancer_source_ranges()[i]));
    out.invalid_all(item(sub(path, "loadBalancerSourceRanges"), i), range, network_problems(range, false));
  }
  if (!balanced && spec.has_allocate_load_balancer_node_ports())
    out.forbidden(sub(path, "allocateLoadBalancerNodePorts"), kBalancersOnly);
  if (!balanced && spec.has_load_balancer_class()) out.forbidden(sub(path, "loadBalancerClass"), kBalancersOnly);
  if (balanced && spec.has_load_balancer_class()) {
    out.invalid_all(sub(path, "loadBalancerClass"), spec.load_balancer_class(),
                    qualified_name_problems(spec.load_balancer_class()));
  }
  if (balanced && is_ip(spec.load_balancer_ip())) check_reachable(out, sub(path, "loadBalancerIP"), spec.load_balancer_ip());
  bool checked = balanced && spec.external_traffic_policy() == "Local";
  if (!checked && spec.health_check_node_port() != 0) {
    out.invalid(sub(path, "healthCheckNodePort"), spec.health_check_node_port(),
                "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'");
  }
}

void check_service_spec(const json::value& value, const std::string& path, Findings& out) {
  view::ServiceSpec spec(value);
  check_service_ports(spec, path, out);
  check_service_addresses(spec, path, out);
  check_balancer(spec, path, out);
  std::string_view preferred = spec.traffic_distribution();
  if (spec.has_traffic_distribution() && preferred != "PreferClose" && preferred != "PreferSameZone" &&
      preferred != "PreferSameNode") {
    out.not_supported_json(sub(path, "trafficDistribution"), json::value(preferred),
                           {"PreferClose", "PreferSameZone", "PreferSameNode"});
  }
  check_labels(out, sub(path, "selector"), spec.selector());
  if (spec.type() == "ExternalName") {
    std::string_view name = spec.external_name();
    if (name.ends_with('.')) name.remove_suffix(1);
    if (name.empty()) out.required(sub(path, "externalName"));
    else out.invalid_all(sub(path, "externalName"), spec.external_name(), dns_subdomain_problems(name));
    for (std::string_view field : {"clusterIPs", "ipFamilies", "ipFamilyPolicy"}) {
      const json::value* found = find(value, field);
      bool empty = !found || (found->is_array() && found->get_array().empty());
      if (!empty) out.forbidden(sub(path, field), "may not be set for ExternalName services");
    }
  }
  if (spec.session_affinity() == "ClientIP") {
    view::ClientIPConfig config = spec.session_affinity_config().client_ip();
    std::string at = sub(path, "sessionAffinityConfig.clientIP.timeoutSeconds");
    if (config.timeout_seconds() <= 0 || config.timeout_seconds() > kAffinitySecondsMax) {
      out.invalid(at, config.timeout_seconds(), "must be greater than 0 and less than 86400");
    }
  }
  bool outside =
      spec.type() == "NodePort" || spec.type() == "LoadBalancer" || (spec.type() == "ClusterIP" && !spec.external_ips().empty());
  if (!outside && !spec.external_traffic_policy().empty()) {
    out.invalid(sub(path, "externalTrafficPolicy"), spec.external_traffic_policy(),
                "may only be set for externally-accessible services");
  }
}

void check_service(const json::value& value, const std::string&, Findings& out) {
  view::Service service(value);
  if (!source_ranges_annotation(service)) return;
  const std::string at = entry("metadata.annotations", kSourceRangesAnnotation);
  if (service.spec().type() != "LoadBalancer") out.forbidden(at, kBalancersOnly);
  for (std::string_view range : source_ranges(service)) out.invalid_all(at, range, network_problems(range, false));
}

constexpr NamedValidationRule kServiceChecks[] = {
    {"io.k8s.api.core.v1.Service", check_service},
    {"io.k8s.api.core.v1.ServiceSpec", check_service_spec},
};

}  // namespace

std::span<const NamedValidationRule> service_rules() { return kServiceChecks; }

void check_service_update(const json::value& now, const json::value& before, std::string_view, Findings& out) {
  view::ServiceSpec spec = view::Service(now).spec(), old = view::Service(before).spec();
  auto class_of = [](view::ServiceSpec one) {
    return one.has_load_balancer_class() ? json::value(one.load_balancer_class()) : json::value();
  };
  if (spec.type() == "LoadBalancer" && old.type() == "LoadBalancer" && class_of(spec) != class_of(old))
    out.invalid_json("spec.loadBalancerClass", class_of(spec), "may not change once set");
  auto is_checked = [](view::ServiceSpec one) {
    return one.type() == "LoadBalancer" && one.external_traffic_policy() == "Local";
  };
  int64_t port = spec.health_check_node_port(), old_port = old.health_check_node_port();
  if (is_checked(spec) && is_checked(old) && old_port != 0 && port != old_port) {
    out.invalid("spec.healthCheckNodePort", port,
                "cannot change healthCheckNodePort on loadBalancer service with externalTraffic=Local during update");
  }
  bool both_have_addresses = spec.type() != "ExternalName" && old.type() != "ExternalName";
  if (!both_have_addresses || old.cluster_ip().empty() || spec.cluster_ip() == old.cluster_ip()) return;
  out.invalid_json("spec.clusterIPs[0]", json::array{json::value(spec.cluster_ip())}, "may not change once set");
}

void check_service_status(const json::value& now, const json::value& before, Findings& out) {
  view::Service service(now);
  view::Range<view::LoadBalancerIngress> points = service.status().load_balancer().ingress();
  if (same_json(points.raw(), view::Service(before).status().load_balancer().ingress().raw())) return;
  if (!points.empty() && service.spec().type() != "LoadBalancer")
    return out.forbidden("status.loadBalancer.ingress", "may only be used when `spec.type` is LoadBalancer");
  // Without a class our own controller writes the status: the node's address may be link-local.
  bool others = service.spec().has_load_balancer_class();
  for (size_t i = 0; i < points.size(); ++i) {
    std::string at = item("status.loadBalancer.ingress", i);
    std::string_view ip = points[i].ip(), host = points[i].hostname();
    std::vector<std::string> problems = ip.empty() ? std::vector<std::string>() : ip_problems(ip, false);
    out.invalid_all(sub(at, "ip"), ip, problems);
    if (others && !ip.empty() && problems.empty()) check_reachable(out, sub(at, "ip"), ip);
    std::string_view mode = points[i].ip_mode();
    if (ip.empty() && !mode.empty()) out.forbidden(sub(at, "ipMode"), "may not be specified when `ip` is not set");
    if (!ip.empty() && mode.empty()) out.required(sub(at, "ipMode"), "must be specified when `ip` is set");
    if (!mode.empty() && mode != "VIP" && mode != "Proxy") out.not_supported(sub(at, "ipMode"), mode, {"Proxy", "VIP"});
    if (host.empty()) continue;
    out.invalid_all(sub(at, "hostname"), host, dns_subdomain_problems(host));
    if (is_ip(host)) out.invalid(sub(at, "hostname"), host, "must be a DNS name, not an IP address");
  }
}

}  // namespace coracle::schema

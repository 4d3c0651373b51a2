// SPDX-License-Identifier: Apache-2.0
// Defaults of services that depend on the type. The registry allocates addresses and node ports. Source: core/v1 API reference,
// Service.
#include <string>

#include "store/kinds/service/service_kinds.h"

namespace coracle::schema {
namespace {

constexpr int64_t kAffinitySeconds = 10800;

void default_affinity(json::object& spec) {
  if (text_at(spec, "sessionAffinity") != "ClientIP") {
    spec.erase("sessionAffinityConfig");
    return;
  }
  json::value& config = spec["sessionAffinityConfig"];
  json::value& seconds = make(config, "clientIP.timeoutSeconds");
  if (seconds.is_null()) seconds = kAffinitySeconds;
}

void default_service_spec(json::object& spec) {
  std::string type(text_at(spec, "type"));
  bool outside = type == "NodePort" || type == "LoadBalancer";
  json::array* external = array_at(spec, "externalIPs");
  bool reachable = outside || (type == "ClusterIP" && external && !external->empty());
  default_affinity(spec);
  if (reachable && unset(spec, "externalTrafficPolicy")) spec["externalTrafficPolicy"] = "Cluster";
  if (type != "ExternalName" && unset(spec, "internalTrafficPolicy", true)) spec["internalTrafficPolicy"] = "Cluster";
  if (type == "LoadBalancer" && unset(spec, "allocateLoadBalancerNodePorts", true)) {
    spec["allocateLoadBalancerNodePorts"] = true;
  }
  std::string address(text_at(spec, "clusterIP"));
  if (!address.empty() && unset(spec, "clusterIPs")) spec["clusterIPs"] = json::array{address};
}

void default_port(json::object& port) {
  json::value* target = port.if_contains("targetPort");
  const json::string* name = target ? target->if_string() : nullptr;
  bool given = target && (name ? !name->empty() : target->is_int64() && target->get_int64() != 0);
  if (!given && port.contains("port")) {
    json::value number = port["port"];
    port["targetPort"] = std::move(number);
  }
}

void default_service(json::object& service) {
  json::object* spec = object_at(service, "spec");
  json::object* status = object_at(service, "status");
  if (!spec || !status || text_at(*spec, "type") != "LoadBalancer") return;
  json::object* balancer = object_at(*status, "loadBalancer");
  json::array* ingress = balancer ? array_at(*balancer, "ingress") : nullptr;
  if (!ingress) return;
  for (json::value& value : *ingress) {
    json::object* point = value.if_object();
    if (point && !unset(*point, "ip") && unset(*point, "ipMode", true)) (*point)["ipMode"] = "VIP";
  }
}

constexpr NamedDefaultRule kServiceDefaults[] = {
    {"io.k8s.api.core.v1.Service", default_service},
    {"io.k8s.api.core.v1.ServiceSpec", default_service_spec},
    {"io.k8s.api.core.v1.ServicePort", default_port},
};

}  // namespace

std::span<const NamedDefaultRule> service_defaults() { return kServiceDefaults; }

}  // namespace coracle::schema

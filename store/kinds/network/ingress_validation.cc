// SPDX-License-Identifier: Apache-2.0
// Validation of Ingresses and IngressClasses: hosts, paths, and one backend each. Source: networking.k8s.io/v1 API reference.
#include <algorithm>

#include "runtime/base/text.h"
#include "store/kinds/network/network_kinds.h"
#include "store/schema/validate/syntax.h"

namespace coracle::schema {
namespace {

constexpr std::string_view kClassAnnotation = "kubernetes.io/ingress.class";
constexpr size_t kControllerBytesMax = 250;

void check_host(Findings& out, const std::string& path, std::string_view host) {
  bool wildcard = host.find('*') != host.npos;
  out.invalid_all(path, host, wildcard ? wildcard_subdomain_problems(host) : dns_subdomain_problems(host));
}

void check_tls(const json::value& tls, const std::string& path, Findings& out) {
  const json::array& hosts = get_array(tls, "hosts");
  for (size_t i = 0; i < hosts.size(); ++i) {
    if (hosts[i].is_string()) check_host(out, item(sub(path, "hosts"), i), hosts[i].get_string());
  }
  std::string_view secret = get_string(tls, "secretName");
  if (!secret.empty()) out.invalid_all(sub(path, "secretName"), secret, dns_subdomain_problems(secret));
}

void check_ingress_spec(const json::value& spec, const std::string& path, Findings& out) {
  if (get_array(spec, "rules").empty() && !find(spec, "defaultBackend")) {
    const json::value* rules = find(spec, "rules");
    out.invalid_json(path, rules ? *rules : json::value(), "either `defaultBackend` or `rules` must be specified");
  }
  const json::value* name = find(spec, "ingressClassName");
  if (name && name->is_string()) {
    std::string_view text = name->get_string();
    out.invalid_all(sub(path, "ingressClassName"), text, dns_subdomain_problems(text));
  }
}

void check_ingress_rule(const json::value& rule, const std::string& path, Findings& out) {
  std::string_view host = get_string(rule, "host");
  if (host.empty()) return;
  if (is_ip(host)) out.invalid(sub(path, "host"), host, "must be a DNS name, not an IP address");
  check_host(out, sub(path, "host"), host);
}

void check_ingress_path(const json::value& value, const std::string& path, Findings& out) {
  std::string_view type = get_string(value, "pathType"), text = get_string(value, "path");
  std::string at = sub(path, "path");
  if (type.empty()) return out.required(sub(path, "pathType"), "pathType must be specified");
  if (type == "ImplementationSpecific") {
    if (!text.empty() && !text.starts_with('/')) out.invalid(at, text, "must be an absolute path");
    return;
  }
  if (type != "Exact" && type != "Prefix") {
    return out.not_supported(sub(path, "pathType"), type, {"Exact", "ImplementationSpecific", "Prefix"});
  }
  if (!text.starts_with('/')) out.invalid(at, text, "must be an absolute path");
  for (std::string_view bad : {"//", "/./", "/../", "%2f", "%2F"}) {
    if (text.find(bad) != text.npos) out.invalid(at, text, "must not contain '" + std::string(bad) + "'");
  }
  for (std::string_view bad : {"/..", "/."}) {
    if (text.ends_with(bad)) out.invalid(at, text, "cannot end with '" + std::string(bad) + "'");
  }
}

void check_typed_reference(const json::value& reference, const std::string& path, Findings& out) {
  const json::value* group = find(reference, "apiGroup");
  if (group && group->is_string()) {
    std::string_view text = group->get_string();
    out.invalid_all(sub(path, "apiGroup"), text, dns_subdomain_problems(text));
  }
  for (std::string_view name : {"kind", "name"}) {
    std::string_view text = get_string(reference, name);
    if (text.empty()) out.required(sub(path, name), std::string(name) + " is required");
    else out.invalid_all(sub(path, name), text, path_segment_problems(text));
  }
}

void check_backend(const json::value& backend, const std::string& path, Findings& out) {
  const json::value *resource = find(backend, "resource"), *service = find(backend, "service");
  if (resource && service) return out.invalid(path, "", "cannot set both resource and service backends");
  if (!resource && !service) return out.invalid(path, "", "resource or service backend is required");
  if (resource) return check_typed_reference(*resource, sub(path, "resource"), out);
  std::string_view name = get_string(*service, "name"), port_name = get_string(*service, "port.name");
  int64_t port = get_int(*service, "port.number");
  if (name.empty()) out.required(sub(path, "service.name"));
  else out.invalid_all(sub(path, "service.name"), name, dns_label_problems(name));
  if (!port_name.empty() && port != 0) out.invalid(path, "", "cannot set both port name & port number");
  else if (!port_name.empty()) out.invalid_all(sub(path, "service.port.name"), port_name, port_name_problems(port_name));
  else if (port != 0) check_port_number(out, sub(path, "service.port.number"), port);
  else out.required(path, "port name or number is required");
}

void check_ingress_class_spec(const json::value& spec, const std::string& path, Findings& out) {
  std::string_view controller = get_string(spec, "controller");
  if (controller.size() > kControllerBytesMax) out.too_long(sub(path, "controller"), kControllerBytesMax);
  check_domain_path(out, sub(path, "controller"), controller);
}

void check_class_parameters(const json::value& parameters, const std::string& path, Findings& out) {
  check_typed_reference(parameters, path, out);
  std::string_view scope = get_string(parameters, "scope");
  const json::value* ns = find(parameters, "namespace");
  if (scope.empty()) return out.required(sub(path, "scope"));
  if (scope != "Cluster" && scope != "Namespace") return out.not_supported(sub(path, "scope"), scope, {"Cluster", "Namespace"});
  if (scope == "Cluster" && ns) out.forbidden(sub(path, "namespace"), "`parameters.scope` is set to 'Cluster'");
  if (scope == "Namespace" && !ns) out.required(sub(path, "namespace"), "`parameters.scope` is set to 'Namespace'");
  if (scope == "Namespace" && ns && ns->is_string()) {
    std::string_view name = ns->get_string();
    out.invalid_all(sub(path, "namespace"), name, dns_label_problems(name));
  }
}

constexpr NamedValidationRule kIngressChecks[] = {
    {"io.k8s.api.networking.v1.IngressSpec", check_ingress_spec},
    {"io.k8s.api.networking.v1.IngressTLS", check_tls},
    {"io.k8s.api.networking.v1.IngressRule", check_ingress_rule},
    {"io.k8s.api.networking.v1.HTTPIngressPath", check_ingress_path},
    {"io.k8s.api.networking.v1.IngressBackend", check_backend, "resource,service"},
    {"io.k8s.api.networking.v1.IngressClassSpec", check_ingress_class_spec},
    {"io.k8s.api.networking.v1.IngressClassParametersReference", check_class_parameters},
};

}  // namespace

std::span<const NamedValidationRule> ingress_rules() { return kIngressChecks; }

void check_ingress_create(const json::value& ingress, Findings& out) {
  const json::value* annotation = get_object(ingress, "metadata.annotations").if_contains(kClassAnnotation);
  const json::value* name = find(ingress, "spec.ingressClassName");
  if (!annotation || !name || *annotation == *name) return;
  out.invalid_json("annotations." + std::string(kClassAnnotation), *annotation,
                   "must match `ingressClassName` when both are specified");
}

void check_ingress_class_update(const json::value& now, const json::value& before, std::string_view, Findings& out) {
  check_immutable(out, "spec.controller", find(now, "spec.controller"), find(before, "spec.controller"));
}

void check_ingress_status(const json::value& now, const json::value&, Findings& out) {
  const json::array& points = get_array(now, "status.loadBalancer.ingress");
  for (size_t i = 0; i < points.size(); ++i) {
    std::string at = item("status.loadBalancer.ingress", i);
    std::string_view ip = get_string(points[i], "ip"), host = get_string(points[i], "hostname");
    if (!ip.empty()) out.invalid_all(sub(at, "ip"), ip, ip_problems(ip, false));
    if (host.empty()) continue;
    out.invalid_all(sub(at, "hostname"), host, dns_subdomain_problems(host));
    if (is_ip(host)) out.invalid(sub(at, "hostname"), host, "must be a DNS name, not an IP address");
  }
}

}  // namespace coracle::schema

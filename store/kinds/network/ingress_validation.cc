// SPDX-License-Identifier: Apache-2.0
// Validation of Ingresses and IngressClasses: hosts, paths, and one backend each. Source: networking.k8s.io/v1 API reference.
#include <algorithm>
#include <utility>

#include "runtime/base/text.h"
#include "store/kinds/network/network_kinds.h"
#include "store/schema/validate/syntax.h"
#include "store/schema/views.h"

namespace coracle::schema {
namespace {

constexpr std::string_view kClassAnnotation = "kubernetes.io/ingress.class";
constexpr size_t kControllerBytesMax = 250;

void check_host(Findings& out, const std::string& path, std::string_view host) {
  bool wildcard = host.find('*') != host.npos;
  out.invalid_all(path, host, wildcard ? wildcard_subdomain_problems(host) : dns_subdomain_problems(host));
}

void check_tls(const json::value& value, const std::string& path, Findings& out) {
  view::IngressTLS tls(value);
  for (size_t i = 0; i < tls.hosts().size(); ++i) check_host(out, item(sub(path, "hosts"), i), tls.hosts()[i]);
  std::string_view secret = tls.secret_name();
  if (!secret.empty()) out.invalid_all(sub(path, "secretName"), secret, dns_subdomain_problems(secret));
}

void check_ingress_spec(const json::value& value, const std::string& path, Findings& out) {
  view::IngressSpec spec(value);
  if (spec.rules().empty() && !spec.has_default_backend()) {
    out.invalid_json(path, spec.has_rules() ? json::value(spec.rules().raw()) : json::value(),
                     "either `defaultBackend` or `rules` must be specified");
  }
  if (!spec.has_ingress_class_name()) return;
  std::string_view name = spec.ingress_class_name();
  out.invalid_all(sub(path, "ingressClassName"), name, dns_subdomain_problems(name));
}

void check_ingress_rule(const json::value& rule, const std::string& path, Findings& out) {
  std::string_view host = view::IngressRule(rule).host();
  if (host.empty()) return;
  if (is_ip(host)) out.invalid(sub(path, "host"), host, "must be a DNS name, not an IP address");
  check_host(out, sub(path, "host"), host);
}

void check_ingress_path(const json::value& value, const std::string& path, Findings& out) {
  std::string_view type = view::HTTPIngressPath(value).path_type(), text = view::HTTPIngressPath(value).path();
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

void check_typed_reference(view::TypedLocalObjectReference reference, const std::string& path, Findings& out) {
  if (reference.has_api_group())
    out.invalid_all(sub(path, "apiGroup"), reference.api_group(), dns_subdomain_problems(reference.api_group()));
  for (auto [name, text] : {std::pair("kind", reference.kind()), std::pair("name", reference.name())}) {
    if (text.empty()) out.required(sub(path, name), std::string(name) + " is required");
    else out.invalid_all(sub(path, name), text, path_segment_problems(text));
  }
}

void check_backend(const json::value& value, const std::string& path, Findings& out) {
  view::TypedLocalObjectReference resource = view::IngressBackend(value).resource();
  view::IngressServiceBackend service = view::IngressBackend(value).service();
  if (resource && service) return out.invalid(path, "", "cannot set both resource and service backends");
  if (!resource && !service) return out.invalid(path, "", "resource or service backend is required");
  if (resource) return check_typed_reference(resource, sub(path, "resource"), out);
  std::string_view name = service.name(), port_name = service.port().name();
  int64_t port = service.port().number();
  if (name.empty()) out.required(sub(path, "service.name"));
  else out.invalid_all(sub(path, "service.name"), name, dns_label_problems(name));
  if (!port_name.empty() && port != 0) out.invalid(path, "", "cannot set both port name & port number");
  else if (!port_name.empty()) out.invalid_all(sub(path, "service.port.name"), port_name, port_name_problems(port_name));
  else if (port != 0) check_port_number(out, sub(path, "service.port.number"), port);
  else out.required(path, "port name or number is required");
}

void check_ingress_class_spec(const json::value& spec, const std::string& path, Findings& out) {
  std::string_view controller = view::IngressClassSpec(spec).controller();
  if (controller.size() > kControllerBytesMax) out.too_long(sub(path, "controller"), kControllerBytesMax);
  check_domain_path(out, sub(path, "controller"), controller);
}

void check_class_parameters(const json::value& value, const std::string& path, Findings& out) {
  view::IngressClassParametersReference parameters(value);
  check_typed_reference(view::TypedLocalObjectReference(value), path, out);
  std::string_view scope = parameters.scope();
  bool ns = parameters.has_namespace_();
  if (scope.empty()) return out.required(sub(path, "scope"));
  if (scope != "Cluster" && scope != "Namespace") return out.not_supported(sub(path, "scope"), scope, {"Cluster", "Namespace"});
  if (scope == "Cluster" && ns) out.forbidden(sub(path, "namespace"), "`parameters.scope` is set to 'Cluster'");
  if (scope == "Namespace" && !ns) out.required(sub(path, "namespace"), "`parameters.scope` is set to 'Namespace'");
  if (scope == "Namespace" && ns) {
    std::string_view name = parameters.namespace_();
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

void check_ingress_create(const json::value& value, Findings& out) {
  view::Ingress ingress(value);
  const json::value* annotation = ingress.metadata().annotations().if_contains(kClassAnnotation);
  if (!annotation || !ingress.spec().has_ingress_class_name()) return;
  if (*annotation == json::value(ingress.spec().ingress_class_name())) return;
  out.invalid_json("annotations." + std::string(kClassAnnotation), *annotation,
                   "must match `ingressClassName` when both are specified");
}

void check_ingress_class_update(const json::value& now, const json::value& before, std::string_view, Findings& out) {
  check_immutable(out, "spec.controller", view::IngressClass(now).spec().controller(),
                  view::IngressClass(before).spec().controller());
}

void check_ingress_status(const json::value& now, const json::value&, Findings& out) {
  view::Range<view::IngressLoadBalancerIngress> points = view::Ingress(now).status().load_balancer().ingress();
  for (size_t i = 0; i < points.size(); ++i) {
    std::string at = item("status.loadBalancer.ingress", i);
    std::string_view ip = points[i].ip(), host = points[i].hostname();
    if (!ip.empty()) out.invalid_all(sub(at, "ip"), ip, ip_problems(ip, false));
    if (host.empty()) continue;
    out.invalid_all(sub(at, "hostname"), host, dns_subdomain_problems(host));
    if (is_ip(host)) out.invalid(sub(at, "hostname"), host, "must be a DNS name, not an IP address");
  }
}

}  // namespace coracle::schema

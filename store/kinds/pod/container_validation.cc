// SPDX-License-Identifier: Apache-2.0
// Validation of containers: names, ports, environment, probes and hooks, resources, security. Source: core/v1 API reference,
// Container.
#include <algorithm>
#include <set>

#include "runtime/base/text.h"
#include "store/kinds/pod/pod_kinds.h"
#include "store/object/quantity.h"
#include "store/schema/validate/resource.h"
#include "store/schema/validate/syntax.h"
#include "store/schema/views.h"

namespace coracle::schema {
namespace {

void check_mount_path(view::VolumeMount mount, const std::string& path, Findings& out) {
  for (auto [name, text] : {std::pair{"subPath", mount.sub_path()}, std::pair{"subPathExpr", mount.sub_path_expr()}}) {
    if (text.starts_with('/')) out.invalid(sub(path, name), text, "must be a relative path");
    for (std::string_view part : split(text, '/')) {
      if (part == "..") out.invalid(sub(path, name), text, "must not contain '..'");
    }
  }
  std::string_view recursive = mount.recursive_read_only(), travels = mount.mount_propagation();
  if (recursive == "Enabled" || recursive == "IfPossible") {
    std::string at = sub(path, "recursiveReadOnly");
    if (!mount.read_only()) out.forbidden(at, "may only be specified when readOnly is true");
    if (!travels.empty() && travels != "None")
      out.forbidden(at, "may only be specified when mountPropagation is None or not specified");
  } else if (!recursive.empty() && recursive != "Disabled") {
    out.not_supported(sub(path, "recursiveReadOnly"), recursive, {"Disabled", "Enabled", "IfPossible"});
  }
  if (!mount.sub_path().empty() && !mount.sub_path_expr().empty()) {
    out.invalid(sub(path, "subPathExpr"), mount.sub_path_expr(), "subPathExpr and subPath are mutually exclusive");
  }
}

void check_mount(const json::value& value, const std::string& path, Findings& out) {
  check_mount_path(view::VolumeMount(value), path, out);
}

void check_port(const json::value& value, const std::string& path, Findings& out) {
  view::ContainerPort port(value);
  if (!port.name().empty()) out.invalid_all(sub(path, "name"), port.name(), port_name_problems(port.name()));
  if (port.container_port() == 0) out.required(sub(path, "containerPort"));
  else check_port_number(out, sub(path, "containerPort"), port.container_port());
  if (port.host_port() != 0) check_port_number(out, sub(path, "hostPort"), port.host_port());
  if (!port.host_ip().empty()) out.invalid_all(sub(path, "hostIP"), port.host_ip(), ip_problems(port.host_ip(), false));
}

void check_field_ref(const json::value& value, const std::string& path, Findings& out) {
  static constexpr std::string_view kPaths[] = {
      "metadata.name",  "metadata.namespace", "metadata.uid",  "spec.nodeName",   "spec.serviceAccountName", "status.hostIP",
      "status.hostIPs", "status.podIP",       "status.podIPs", "metadata.labels", "metadata.annotations"};
  std::string_view field = view::ObjectFieldSelector(value).field_path();
  if (field.empty()) return;
  bool of_labels = field.starts_with("metadata.labels['"), of_annotations = field.starts_with("metadata.annotations['");
  size_t key_at = field.find("['") + 2;
  if ((of_labels || of_annotations) && field.size() >= key_at + 2 && field.ends_with("']")) {
    std::string key(field.substr(key_at, field.size() - 2 - key_at));
    if (of_annotations) key = to_lower(key);
    return out.invalid_all(path, key, qualified_name_problems(key));
  }
  if (std::find(std::begin(kPaths), std::end(kPaths), field) != std::end(kPaths)) return;
  out.invalid(sub(path, "fieldPath"), field, "error converting fieldPath: field label not supported: " + std::string(field));
}

void check_divisor(std::string_view resource, const json::value* given, const std::string& path, Findings& out) {
  static constexpr std::string_view kOfBytes[] = {"1",   "1k",  "1M",  "1G",  "1T",  "1P", "1E",
                                                  "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"};
  auto divisor = given ? Quantity::from_json(*given) : Quantity();
  if (!divisor || divisor->is_zero()) return;
  std::string_view name = resource.substr(resource.find('.') + 1);
  std::string text = divisor->text();
  if (name == "cpu") {
    if (text != "1m" && text != "1")
      out.invalid(sub(path, "divisor"), resource, "only divisor's values 1m and 1 are supported with the cpu resource");
  } else if (std::find(std::begin(kOfBytes), std::end(kOfBytes), text) == std::end(kOfBytes)) {
    std::string what = name == "ephemeral-storage" ? "local ephemeral storage" : name == "memory" ? "memory" : "hugepages";
    out.invalid(sub(path, "divisor"), resource,
                "only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are supported with the " + what +
                    " resource");
  }
}

void check_resource_ref(const json::value& value, const std::string& path, Findings& out) {
  std::string_view resource = view::ResourceFieldSelector(value).resource();
  if (resource.empty()) return;
  check_divisor(resource, view::ResourceFieldSelector(value).divisor(), path, out);
  for (std::string_view prefix : {"limits.", "requests."}) {
    if (!resource.starts_with(prefix)) continue;
    std::string_view rest = resource.substr(prefix.size());
    if (rest == "cpu" || rest == "memory" || rest == "ephemeral-storage" || rest.starts_with("hugepages-")) return;
  }
  out.not_supported(sub(path, "resource"), resource,
                    {"limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu", "requests.ephemeral-storage",
                     "requests.memory"});
}

void check_descending_path(std::string_view text, const std::string& path, Findings& out) {
  if (text.starts_with('/')) out.invalid(path, text, "must be a relative path");
  for (std::string_view part : split(text, '/')) {
    if (part == "..") return out.invalid(path, text, "must not contain '..'");
  }
}

void check_env(const json::value& value, const std::string& path, Findings& out) {
  view::EnvVar env(value);
  if (!env.name().empty()) out.invalid_all(sub(path, "name"), env.name(), env_name_problems(env.name()));
  if (!env.has_value_from()) return;
  std::string at = sub(path, "valueFrom");
  if (!env.value().empty()) out.invalid(at, "", "may not be specified when `value` is not empty");
  size_t sources = env.value_from().raw().get_object().size();
  if (sources == 0) {
    out.invalid(at, "", "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`");
  }
  if (sources > 1) out.invalid(at, "", "may not have more than one field specified at a time");
  view::EnvVarSource from = env.value_from();
  auto check_name = [&](std::string_view field, std::string_view name) {
    out.invalid_all(sub(sub(at, field), "name"), name, dns_subdomain_problems(name));
  };
  if (from.has_config_map_key_ref()) check_name("configMapKeyRef", from.config_map_key_ref().name());
  if (from.has_secret_key_ref()) check_name("secretKeyRef", from.secret_key_ref().name());
  // Only for a volume: all labels or annotations at once.
  std::string_view field = from.field_ref().field_path();
  if (field == "metadata.labels" || field == "metadata.annotations") {
    out.not_supported(sub(at, "fieldRef.fieldPath"), field,
                      {"metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
                       "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"});
  }
}

void check_entry_key(const json::value& value, const std::string& path, Findings& out) {  // of a ConfigMap or Secret
  std::string_view key = view::SecretKeySelector(value).key();
  if (!key.empty()) out.invalid_all(sub(path, "key"), key, config_key_problems(key));
}

void check_file_key(const json::value& value, const std::string& path, Findings& out) {
  std::string_view file = view::FileKeySelector(value).path(), key = view::FileKeySelector(value).key();
  check_descending_path(file, sub(path, "path"), out);
  if (!key.empty()) out.invalid_all(sub(path, "key"), key, env_name_problems(key));
}

// The rules that restart a container depending on its exit code. Source: KEP-5307.
void check_restart_rules(const json::value& value, const std::string& path, Findings& out) {
  constexpr size_t kRulesMax = 20, kCodesMax = 255;
  view::Container container(value);
  view::Range<view::ContainerRestartRule> rules = container.restart_policy_rules();
  std::string at = sub(path, "restartPolicyRules");
  if (rules.empty()) return;
  if (container.restart_policy().empty()) out.required(sub(path, "restartPolicy"), "must be set when `restartPolicyRules` are");
  if (rules.size() > kRulesMax) return out.too_many(at, rules.size(), kRulesMax);
  for (size_t i = 0; i < rules.size(); ++i) {
    std::string here = item(at, i);
    std::string_view action = rules[i].action(), op = rules[i].exit_codes().operator_();
    if (!action.empty() && action != "Restart" && action != "RestartAllContainers")
      out.not_supported(sub(here, "action"), action, {"Restart", "RestartAllContainers"});
    if (!rules[i].has_exit_codes()) {
      out.required(sub(here, "exitCodes"), "must be specified");
      continue;
    }
    if (!op.empty() && op != "In" && op != "NotIn") out.not_supported(sub(here, "exitCodes.operator"), op, {"In", "NotIn"});
    size_t codes = rules[i].exit_codes().values().size();
    if (codes > kCodesMax) out.too_many(sub(here, "exitCodes.values"), codes, kCodesMax);
  }
}

void check_env_from(const json::value& value, const std::string& path, Findings& out) {
  view::EnvFromSource source(value);
  if (!source.prefix().empty()) out.invalid_all(sub(path, "prefix"), source.prefix(), env_name_problems(source.prefix()));
  size_t given = size_t(source.has_config_map_ref()) + size_t(source.has_secret_ref());
  if (given == 0) out.invalid(path, "", "must specify one of: `configMapRef` or `secretRef`");
  if (given > 1) out.invalid(path, "", "may not have more than one field specified at a time");
  auto check_name = [&](std::string_view field, std::string_view name) {
    if (name.empty()) return out.required(sub(sub(path, field), "name"));
    std::string whole(name);
    if (whole.size() > 1 && whole.ends_with('-')) whole.back() = 'a';  // Kubernetes checks it as the prefix of a name
    out.invalid_all(sub(sub(path, field), "name"), name, dns_subdomain_problems(whole));
  };
  if (source.has_config_map_ref()) check_name("configMapRef", source.config_map_ref().name());
  if (source.has_secret_ref()) check_name("secretRef", source.secret_ref().name());
}

void check_handler(const json::value& value, const std::string& path, Findings& out) {
  size_t handlers = 0;
  for (std::string_view handler : {"exec", "httpGet", "tcpSocket", "grpc", "sleep"}) {
    const json::value* found = find(value, handler);
    if (!found) continue;
    if (++handlers > 1) out.forbidden(sub(path, handler), "may not specify more than 1 handler type");
  }
  if (handlers == 0) out.required(path, "must specify a handler type");
  view::LifecycleHandler handler(value);  // or a probe, which has it at the same place
  if (handler.has_exec() && handler.exec().command().empty()) {
    out.required(sub(path, "exec.command"));
  }
}

void check_http(const json::value& value, const std::string& path, Findings& out) {
  view::HTTPGetAction http(value);
  if (http.path().empty()) out.required(sub(path, "path"));
  check_port_or_name(out, sub(path, "port"), http.port());
  for (view::HTTPHeader header : http.http_headers()) {
    out.invalid_all(sub(path, "httpHeaders"), header.name(), header_name_problems(header.name()));
  }
}

void check_tcp(const json::value& value, const std::string& path, Findings& out) {
  check_port_or_name(out, sub(path, "port"), view::TCPSocketAction(value).port());
}

void check_grpc(const json::value& value, const std::string& path, Findings& out) {
  check_port_number(out, sub(path, "port"), view::GRPCAction(value).port());
}

void check_probe(const json::value& value, const std::string& path, Findings& out) {
  view::Probe probe(value);
  check_handler(value, path, out);
  for (auto [name, number] :
       {std::pair{"initialDelaySeconds", probe.initial_delay_seconds()}, std::pair{"timeoutSeconds", probe.timeout_seconds()},
        std::pair{"periodSeconds", probe.period_seconds()}, std::pair{"successThreshold", probe.success_threshold()},
        std::pair{"failureThreshold", probe.failure_threshold()}}) {
    out.not_negative(sub(path, name), number);
  }
  if (probe.has_termination_grace_period_seconds() && probe.termination_grace_period_seconds() <= 0) {
    out.invalid(sub(path, "terminationGracePeriodSeconds"), probe.termination_grace_period_seconds(), "must be greater than 0");
  }
}

void check_probes(view::Container container, const std::string& path, Findings& out) {
  for (auto [name, probe] :
       {std::pair{"livenessProbe", container.liveness_probe()}, std::pair{"startupProbe", container.startup_probe()}}) {
    if (probe && probe.success_threshold() != 1)
      out.invalid(sub(sub(path, name), "successThreshold"), probe.success_threshold(), "must be 1");
  }
  if (container.readiness_probe().has_termination_grace_period_seconds()) {
    out.invalid(sub(path, "readinessProbe.terminationGracePeriodSeconds"),
                container.readiness_probe().termination_grace_period_seconds(), "must not be set for readinessProbes");
  }
}

// The request must not exceed the limit; both must be equal for a resource that cannot be overcommitted.
void check_resource_request(const json::object& limits, std::string_view name, const json::value& asked, const std::string& path,
                            Findings& out) {
  const json::value* limit = limits.if_contains(name);
  auto request = Quantity::from_json(asked);
  if (!request) return;
  if (!limit) {
    if (!may_overcommit(name)) out.required(sub(path, "limits"), "Limit must be set for non overcommitable resources");
    return;
  }
  auto most = Quantity::from_json(*limit);
  if (!most) return;
  std::string words = std::string(name) + " limit of " + most->text();
  if (!may_overcommit(name) && !(*request == *most))
    out.invalid(sub(path, "requests"), request->text(), "must be equal to " + words);
  else if (may_overcommit(name) && *most < *request)
    out.invalid(sub(path, "requests"), request->text(), "must be less than or equal to " + words);
}

void check_resource_requirements(const json::value& value, const std::string& path, Findings& out) {
  view::ResourceRequirements resources(value);
  check_container_resources(out, sub(path, "limits"), resources.limits());
  check_container_resources(out, sub(path, "requests"), resources.requests());
  bool pages = false, basic = false;
  for (const json::object* amounts : {&resources.limits(), &resources.requests()}) {
    for (const auto& pair : *amounts) {
      pages = pages || is_huge_pages(pair.key());
      basic = basic || pair.key() == "cpu" || pair.key() == "memory";
    }
  }
  for (const auto& pair : resources.requests()) check_resource_request(resources.limits(), pair.key(), pair.value(), path, out);
  if (pages && !basic) out.forbidden(path, "HugePages require cpu or memory");
}

void check_security(const json::value& value, const std::string& path, Findings& out) {
  view::SecurityContext context(value);
  for (auto [name, given, id] : {std::tuple{"runAsUser", context.has_run_as_user(), context.run_as_user()},
                                 std::tuple{"runAsGroup", context.has_run_as_group(), context.run_as_group()}}) {
    if (given) out.between(sub(path, name), id, 0, 2147483647);
  }
  bool refuses = context.has_allow_privilege_escalation() && !context.allow_privilege_escalation();
  if (refuses && context.privileged()) {
    out.invalid_json(path, value, "cannot set `allowPrivilegeEscalation` to false and `privileged` to true");
  }
  // Without the prefix CAP_, which is the field's correct notation, it is accepted: that is Kubernetes' rule, and manifests
  // depend on it.
  const json::array& added = context.capabilities().add().raw();
  if (refuses && std::find(added.begin(), added.end(), json::value("CAP_SYS_ADMIN")) != added.end()) {
    out.invalid_json(path, value, "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN");
  }
}

void check_app_armor(const json::value& value, const std::string& path, Findings& out) {
  view::AppArmorProfile profile(value);
  std::string at = sub(path, "localhostProfile");
  if (profile.type() != "Localhost") {
    if (profile.has_localhost_profile())
      out.invalid(at, profile.localhost_profile(), "can only be set when AppArmor type is Localhost");
    return;
  }
  if (trim(profile.localhost_profile()).empty()) return out.required(at, "must be set when AppArmor type is Localhost");
  if (trim(profile.localhost_profile()) != profile.localhost_profile()) {
    out.invalid(at, profile.localhost_profile(), "must not be padded with whitespace");
  }
}

void check_seccomp(const json::value& value, const std::string& path, Findings& out) {
  view::SeccompProfile profile(value);
  std::string at = sub(path, "localhostProfile");
  if (profile.type() == "Localhost" && !profile.has_localhost_profile())
    out.required(at, "must be set when seccomp type is Localhost");
  if (profile.type() == "Localhost") check_descending_path(profile.localhost_profile(), at, out);
  if (profile.type() != "Localhost" && profile.has_localhost_profile()) {
    out.invalid(at, profile.localhost_profile(), "can only be set when seccomp type is Localhost");
  }
}

void check_container(const json::value& value, const std::string& path, Findings& out) {
  view::Container container(value);
  if (!container.name().empty()) out.invalid_all(sub(path, "name"), container.name(), dns_label_problems(container.name()));
  if (container.image().empty()) out.required(sub(path, "image"));
  check_probes(container, path, out);
  check_restart_rules(value, path, out);
  std::set<std::string_view> ports;
  for (size_t i = 0; i < container.ports().size(); ++i) {
    std::string_view name = container.ports()[i].name();
    if (!name.empty() && !ports.insert(name).second) out.duplicate(sub(item(sub(path, "ports"), i), "name"), name);
  }
}

constexpr NamedValidationRule kContainerChecks[] = {
    {"io.k8s.api.core.v1.Container", check_container},
    {"io.k8s.api.core.v1.EphemeralContainer", check_container},
    {"io.k8s.api.core.v1.ContainerPort", check_port},
    {"io.k8s.api.core.v1.VolumeMount", check_mount},
    {"io.k8s.api.core.v1.EnvVar", check_env},
    {"io.k8s.api.core.v1.EnvFromSource", check_env_from},
    {"io.k8s.api.core.v1.ConfigMapKeySelector", check_entry_key},
    {"io.k8s.api.core.v1.SecretKeySelector", check_entry_key},
    {"io.k8s.api.core.v1.FileKeySelector", check_file_key},
    {"io.k8s.api.core.v1.ObjectFieldSelector", check_field_ref},
    {"io.k8s.api.core.v1.ResourceFieldSelector", check_resource_ref},
    {"io.k8s.api.core.v1.Probe", check_probe},
    {"io.k8s.api.core.v1.LifecycleHandler", check_handler},
    {"io.k8s.api.core.v1.HTTPGetAction", check_http},
    {"io.k8s.api.core.v1.TCPSocketAction", check_tcp},
    {"io.k8s.api.core.v1.GRPCAction", check_grpc},
    {"io.k8s.api.core.v1.ResourceRequirements", check_resource_requirements},
    {"io.k8s.api.core.v1.SecurityContext", check_security},
    {"io.k8s.api.core.v1.SeccompProfile", check_seccomp},
    {"io.k8s.api.core.v1.AppArmorProfile", check_app_armor},
};

}  // namespace

std::span<const NamedValidationRule> container_rules() { return kContainerChecks; }

}  // namespace coracle::schema

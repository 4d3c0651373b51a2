// SPDX-License-Identifier: Apache-2.0
// Validation of pod specs: unique names, valid references, ranges; and which fields of a pod may change. Containers and volumes
// have files of their own. Source: core/v1 API reference, Pod.
#include "store/kinds/pod/pod_validation.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "runtime/base/text.h"
#include "store/kinds/pod/pod_kinds.h"
#include "store/schema/default.h"
#include "store/schema/validate/resource.h"
#include "store/schema/validate/syntax.h"
#include "store/schema/views.h"

namespace coracle::schema {
namespace {

constexpr int64_t kIdMax = 2147483647;

// Calls `visit` for every list of containers in a pod, with its name.
template <typename Visit>
void each_container(view::PodSpec spec, const std::string& path, Visit visit) {
  for (std::string_view list : {"initContainers", "containers", "ephemeralContainers"}) {
    const json::array& items = get_array(spec.raw(), list);
    for (size_t i = 0; i < items.size(); ++i) visit(list, view::Container(items[i]), item(sub(path, list), i));
  }
}

void check_unique_names(view::PodSpec spec, const std::string& path, Findings& out) {
  std::set<std::string_view> names;
  each_container(spec, path, [&](std::string_view, view::Container container, const std::string& at) {
    if (!container.name().empty() && !names.insert(container.name()).second) out.duplicate(sub(at, "name"), container.name());
  });
  std::set<std::string_view> volumes;
  for (size_t i = 0; i < spec.volumes().size(); ++i) {
    std::string_view name = spec.volumes()[i].name();
    if (!name.empty() && !volumes.insert(name).second) out.duplicate(sub(item(sub(path, "volumes"), i), "name"), name);
  }
}

// The path without a drive letter, as in C:\data. Manifests for Windows need not declare the operating system; one that does may
// contain other colons too.
std::string_view without_drive(std::string_view path) {
  const bool has_drive = path.size() > 2 && std::isalpha(static_cast<unsigned char>(path[0])) && path[1] == ':' &&
                         (path[2] == '\\' || path[2] == '/');
  return has_drive ? path.substr(3) : path;
}

void check_mounts(view::PodSpec spec, const std::string& path, Findings& out) {
  std::set<std::string_view> volumes;
  for (view::Volume volume : spec.volumes()) volumes.insert(volume.name());
  const bool is_windows = spec.os().name() == "windows";
  each_container(spec, path, [&](std::string_view, view::Container container, const std::string& at) {
    std::set<std::string_view> places;
    for (size_t i = 0; i < container.volume_mounts().size(); ++i) {
      view::VolumeMount mount = container.volume_mounts()[i];
      std::string here = item(sub(at, "volumeMounts"), i);
      if (!mount.name().empty() && !volumes.contains(mount.name())) out.not_found(sub(here, "name"), mount.name());
      if (!mount.mount_path().empty() && !places.insert(mount.mount_path()).second) {
        out.invalid(sub(here, "mountPath"), mount.mount_path(), "must be unique");
      }
      if (!is_windows && without_drive(mount.mount_path()).find(':') != std::string_view::npos) {
        out.invalid(sub(here, "mountPath"), mount.mount_path(), "must not contain ':'");
      }
    }
  });
}

// Init containers run one after the other, so their host ports do not conflict.
void check_host_ports(view::PodSpec spec, const std::string& path, Findings& out) {
  std::set<std::string> taken;
  each_container(spec, path, [&](std::string_view list, view::Container container, const std::string& at) {
    if (list == "ephemeralContainers") return;
    std::set<std::string> own;
    std::set<std::string>& seen = list == "containers" ? taken : own;
    for (size_t i = 0; i < container.ports().size(); ++i) {
      view::ContainerPort port = container.ports()[i];
      std::string here = item(sub(at, "ports"), i);
      if (list == "containers" && spec.host_network() && port.host_port() && port.host_port() != port.container_port()) {
        out.invalid(sub(here, "hostPort"), port.host_port(), "must match `containerPort` when `hostNetwork` is true");
      }
      if (!port.host_port()) continue;
      std::string address =
          std::string(port.protocol()) + "/" + std::string(port.host_ip()) + "/" + std::to_string(port.host_port());
      if (!seen.insert(address).second) out.duplicate(sub(here, "hostPort"), address);
    }
  });
}

// Probes and hooks are only allowed for containers that keep running.
void check_init_containers(view::PodSpec spec, const std::string& path, Findings& out) {
  each_container(spec, path, [&](std::string_view list, view::Container container, const std::string& at) {
    if (list != "ephemeralContainers" && container.has_restart_policy() && container.restart_policy() != "Always" &&
        container.restart_policy() != "Never" && container.restart_policy() != "OnFailure") {
      out.not_supported(sub(at, "restartPolicy"), container.restart_policy(), {"Always", "Never", "OnFailure"});
    }
    if (list != "initContainers" || container.restart_policy() == "Always") return;
    for (std::string_view field : {"lifecycle", "livenessProbe", "readinessProbe", "startupProbe"}) {
      if (find(container.raw(), field)) {
        out.forbidden(sub(at, field), "may not be set for init containers without restartPolicy=Always");
      }
    }
  });
}

void check_dns(view::PodSpec spec, const std::string& path, Findings& out) {
  view::PodDNSConfig config = spec.dns_config();
  std::string at = sub(path, "dnsConfig");
  if (spec.dns_policy() == "None" && !config) return out.required(at, "must provide `dnsConfig` when `dnsPolicy` is None");
  if (spec.dns_policy() == "None" && config.nameservers().empty()) {
    return out.required(sub(at, "nameservers"), "must provide at least one DNS nameserver when `dnsPolicy` is None");
  }
  if (config.nameservers().size() > 3)
    out.invalid_json(sub(at, "nameservers"), config.nameservers().raw(), "must not have more than 3 nameservers");
  if (config.searches().size() > 32)
    out.invalid_json(sub(at, "searches"), config.searches().raw(), "must not have more than 32 search paths");
  for (size_t i = 0; i < config.nameservers().size(); ++i) {
    std::string_view server = config.nameservers()[i];
    out.invalid_all(item(sub(at, "nameservers"), i), server, ip_problems(server, false));
  }
  size_t characters = 0;
  for (size_t i = 0; i < config.searches().size(); ++i) {
    std::string_view search = config.searches()[i];
    characters += search.size() + (i > 0);
    if (search == ".") continue;  // the root: names are not extended
    if (search.ends_with('.')) search.remove_suffix(1);
    out.invalid_all(item(sub(at, "searches"), i), search, dns_search_problems(search));
  }
  if (characters > 2048) {
    out.invalid_json(sub(at, "searches"), config.searches().raw(),
                     "must not have more than 2048 characters (including spaces) in the search list");
  }
  for (size_t i = 0; i < config.options().size(); ++i) {
    if (config.options()[i].name().empty()) out.required(item(sub(at, "options"), i), "must not be empty");
  }
}

void check_hostname_override(view::PodSpec spec, const std::string& path, Findings& out) {
  constexpr size_t kHostnameMax = 64;  // of Linux
  std::string_view name = spec.hostname_override();
  std::string at = sub(path, "hostnameOverride");
  if (name.empty()) return;
  out.invalid_all(at, name, dns_subdomain_problems(name));
  if (name.size() > kHostnameMax) out.too_long(at, kHostnameMax);
  if (spec.set_hostname_as_fqdn())
    out.invalid_json(sub(path, "setHostnameAsFQDN"), json::value(true), "must not be true when `hostnameOverride` is set");
  if (spec.host_network())
    out.invalid_json(sub(path, "hostNetwork"), json::value(true), "must not be true when `hostnameOverride` is set");
}

void check_pod_security(view::PodSpec spec, const std::string& path, Findings& out) {
  view::PodSecurityContext context = spec.security_context();
  std::string at = sub(path, "securityContext");
  for (auto [name, given, id] : {std::tuple{"runAsUser", context.has_run_as_user(), context.run_as_user()},
                                 std::tuple{"runAsGroup", context.has_run_as_group(), context.run_as_group()},
                                 std::tuple{"fsGroup", context.has_fs_group(), context.fs_group()}}) {
    if (given) out.between(sub(at, name), id, 0, kIdMax);
  }
  for (size_t i = 0; i < context.supplemental_groups().size(); ++i) {
    out.between(item(sub(at, "supplementalGroups"), i), context.supplemental_groups()[i], 0, kIdMax);
  }
  if (spec.share_process_namespace() && spec.host_pid()) {
    out.invalid_json(sub(at, "shareProcessNamespace"), json::value(true),
                     "ShareProcessNamespace and HostPID cannot both be enabled");
  }
}

// A user namespace cannot be combined with host namespaces, and raw block devices cannot be id-mapped. procMount Unmasked needs a
// user namespace. The messages, including capital letters, are Kubernetes'.
void check_host_users(view::PodSpec spec, const std::string& path, Findings& out) {
  constexpr std::string_view kWhen = "when `hostUsers` is false";
  const bool own_users = spec.has_host_users() && !spec.host_users();
  each_container(spec, path, [&](std::string_view, view::Container container, const std::string& at) {
    std::string_view proc = container.security_context().proc_mount();
    if (!own_users && proc == "Unmasked")
      out.invalid(sub(at, "securityContext.procMount"), proc, "`hostUsers` must be false to use `Unmasked`");
    if (own_users && !container.volume_devices().empty()) out.forbidden(sub(at, "volumeDevices"), kWhen);
  });
  if (!own_users) return;
  if (spec.host_network()) out.forbidden(sub(path, "hostNetwork"), kWhen);
  if (spec.host_pid()) out.forbidden(sub(path, "HostPID"), kWhen);
  if (spec.host_ipc()) out.forbidden(sub(path, "HostIPC"), kWhen);
}

void check_pod_spec(const json::value& value, const std::string& path, Findings& out) {
  view::PodSpec spec(value);
  check_unique_names(spec, path, out);
  check_mounts(spec, path, out);
  check_host_ports(spec, path, out);
  check_init_containers(spec, path, out);
  check_dns(spec, path, out);
  check_hostname_override(spec, path, out);
  check_pod_security(spec, path, out);
  check_host_users(spec, path, out);
  check_placement(value, path, out);
  check_surroundings(value, path, out);
  check_container_resources(out, sub(path, "overhead.limits"), spec.overhead());
  if (spec.has_active_deadline_seconds())
    out.between(sub(path, "activeDeadlineSeconds"), spec.active_deadline_seconds(), 1, kIdMax);
  check_labels(out, sub(path, "nodeSelector"), spec.node_selector());
  for (auto [name, text] : {std::pair{"hostname", spec.hostname()}, std::pair{"subdomain", spec.subdomain()}}) {
    if (!text.empty()) out.invalid_all(sub(path, name), text, dns_label_problems(text));
  }
  for (auto [name, text] :
       {std::pair{"nodeName", spec.node_name()}, std::pair{"serviceAccountName", spec.service_account_name()},
        std::pair{"priorityClassName", spec.priority_class_name()}, std::pair{"runtimeClassName", spec.runtime_class_name()}}) {
    if (!text.empty()) out.invalid_all(sub(path, name), text, dns_subdomain_problems(text));
  }
}

void check_toleration(const json::value& value, const std::string& path, Findings& out) {
  view::Toleration toleration(value);
  std::string_view op = toleration.operator_();
  if (!toleration.key().empty()) out.invalid_all(sub(path, "key"), toleration.key(), qualified_name_problems(toleration.key()));
  if (toleration.key().empty() && op != "Exists") {
    out.invalid(sub(path, "operator"), op,
                "operator must be Exists when `key` is empty, which means \"match all values and all keys\"");
  }
  if (op == "Exists" && !toleration.value().empty()) {
    out.invalid(sub(path, "operator"), toleration.value(), "value must be empty when `operator` is 'Exists'");
  }
  if (op.empty() || op == "Equal") {
    std::vector<std::string> problems = label_value_problems(toleration.value());
    if (!problems.empty()) out.invalid(sub(path, "operator"), toleration.value(), join(problems, ";"));
  }
  if ((op == "Lt" || op == "Gt") && !parse_number<int64_t>(toleration.value())) {
    out.invalid(sub(path, "value"), toleration.value(), "must be a whole number when `operator` is 'Lt' or 'Gt'");
  }
  if (toleration.has_toleration_seconds() && toleration.effect() != "NoExecute") {
    out.invalid(sub(path, "effect"), toleration.effect(), "effect must be 'NoExecute' when `tolerationSeconds` is set");
  }
}

void check_node_requirement(const json::value& value, const std::string& path, Findings& out) {
  view::NodeSelectorRequirement requirement(value);
  std::string_view op = requirement.operator_();
  bool listed = op == "In" || op == "NotIn", bare = op == "Exists" || op == "DoesNotExist", single = op == "Gt" || op == "Lt";
  if (listed && requirement.values().empty())
    out.required(sub(path, "values"), "must be specified when `operator` is 'In' or 'NotIn'");
  if (bare && !requirement.values().empty()) {
    out.forbidden(sub(path, "values"), "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
  }
  if (single && requirement.values().size() != 1) {
    out.required(sub(path, "values"), "must be specified single value when `operator` is 'Lt' or 'Gt'");
  }
  if (!requirement.key().empty())
    out.invalid_all(sub(path, "key"), requirement.key(), qualified_name_problems(requirement.key()));
}

void check_host_alias(const json::value& value, const std::string& path, Findings& out) {
  view::HostAlias alias(value);
  out.invalid_all(sub(path, "ip"), alias.ip(), ip_problems(alias.ip(), false));
  for (size_t i = 0; i < alias.hostnames().size(); ++i) {
    out.invalid_all(item(sub(path, "hostnames"), i), alias.hostnames()[i], dns_subdomain_problems(alias.hostnames()[i]));
  }
}

constexpr NamedValidationRule kPodChecks[] = {
    {"io.k8s.api.core.v1.PodSpec", check_pod_spec},
    {"io.k8s.api.core.v1.Toleration", check_toleration},
    {"io.k8s.api.core.v1.NodeSelectorRequirement", check_node_requirement},
    {"io.k8s.api.core.v1.HostAlias", check_host_alias},
};

// ---- update ----

constexpr std::string_view kMayChange =
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

// Gives `spec` the node affinity of `old`. An affinity that was added for it alone goes.
void restore_node_affinity(json::object& spec, const json::object& old) {
  const json::value* before = old.if_contains("affinity");
  const json::value* wanted = view::Affinity(before).node_affinity().pointer();
  json::value* affinity = spec.if_contains("affinity");
  if (wanted && !affinity) affinity = &(spec["affinity"] = json::object());
  json::object* parts = affinity ? affinity->if_object() : nullptr;
  if (!parts) return;
  if (wanted) (*parts)["nodeAffinity"] = *wanted;
  else parts->erase("nodeAffinity");
  if (parts->empty() && !before) spec.erase("affinity");
}

// `now` with all mutable fields reset to `before`: any remaining difference is an error.
json::value without_what_may_change(const json::value& now, const json::value& before, std::string_view subresource) {
  json::value munged = now;
  json::object& spec = munged.get_object();
  const json::object& old = before.get_object();
  auto restore = [&](std::string_view field) {
    if (const json::value* value = old.if_contains(field)) spec[field] = *value;
    else spec.erase(field);
  };
  for (std::string_view field : {"activeDeadlineSeconds", "tolerations", "schedulingGates"}) restore(field);
  if (subresource == "ephemeralcontainers") restore("ephemeralContainers");
  if (!view::PodSpec(before).scheduling_gates().empty()) {
    restore("nodeSelector");
    restore_node_affinity(spec, old);
  }
  if (subresource == "binding") restore("nodeName");
  if (view::PodSpec(before).termination_grace_period_seconds() < 0 &&
      view::PodSpec(now).termination_grace_period_seconds() == 1) {
    restore("terminationGracePeriodSeconds");
  }
  for (std::string_view list : {"containers", "initContainers"}) {
    json::value* containers = spec.if_contains(list);
    const json::array& olds = get_array(before, list);
    if (!containers || !containers->is_array()) continue;
    for (size_t i = 0; i < containers->get_array().size() && i < olds.size(); ++i) {
      json::value& container = containers->get_array()[i];
      if (view::Container old_one(olds[i]); old_one.has_image() && container.is_object())
        container.get_object()["image"] = old_one.image();
    }
  }
  return munged;
}

std::vector<std::string> differing_fields(const json::value& a, const json::value& b) {
  std::set<std::string> names;
  for (const json::value* side : {&a, &b}) {
    for (const auto& pair : side->get_object()) {
      const json::value* left = find_keys(a, {pair.key()});
      const json::value* right = find_keys(b, {pair.key()});
      if (!left || !right || !same_json(*left, *right)) names.insert("spec." + std::string(pair.key()));
    }
  }
  return {names.begin(), names.end()};
}

// A gated pod's node selector may get further terms.
void check_node_selector_grows(view::PodSpec now, view::PodSpec before, Findings& out) {
  const json::object& kept = now.node_selector();
  for (const auto& pair : before.node_selector()) {
    const json::value* value = kept.if_contains(pair.key());
    if (value && *value == pair.value()) continue;
    out.invalid_json("spec.nodeSelector", json::value(kept),
                     "only additions to spec.nodeSelector are allowed (no mutations or deletions)");
    return;
  }
}

bool begins_with(const json::array& now, const json::array& before) {
  return now.size() >= before.size() && std::equal(before.begin(), before.end(), now.begin());
}

// Requirements are added at the end. A term without any selects no node, so it stays so.
bool term_only_grows(view::NodeSelectorTerm now, view::NodeSelectorTerm before) {
  const json::array &labels = before.match_expressions().raw(), &fields = before.match_fields().raw();
  const json::array &new_labels = now.match_expressions().raw(), &new_fields = now.match_fields().raw();
  if (labels.empty() && fields.empty() && !(new_labels.empty() && new_fields.empty())) return false;
  return begins_with(new_labels, labels) && begins_with(new_fields, fields);
}

// What a gated pod requires of its node may get stricter. A pod that requires nothing may get any requirement, and preferences
// may change. Source: KEP-3838.
void check_node_affinity_grows(view::PodSpec now, view::PodSpec before, Findings& out) {
  const std::string path = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";
  auto terms_of = [](view::PodSpec spec) {
    return spec.affinity().node_affinity().required_during_scheduling_ignored_during_execution().node_selector_terms();
  };
  view::Range<view::NodeSelectorTerm> terms = terms_of(now), olds = terms_of(before);
  if (!olds.empty() && olds.size() != terms.size())
    return out.invalid_json(path, terms.raw(), "no additions/deletions to non-empty NodeSelectorTerms list are allowed");
  for (size_t i = 0; i < olds.size(); ++i)
    if (!term_only_grows(terms[i], olds[i]))
      out.invalid_json(item(path, i), terms[i].raw(), "only additions are allowed (no mutations or deletions)");
}

void check_tolerations_only_grow(view::PodSpec now, view::PodSpec before, Findings& out) {
  auto without_seconds = [](json::value toleration) {
    if (json::object* object = toleration.if_object()) object->erase("tolerationSeconds");
    return to_text(toleration);  // canonical: equal values have equal text
  };
  std::set<std::string> kept;
  for (const json::value& toleration : now.tolerations().raw()) kept.insert(without_seconds(toleration));
  for (const json::value& old : before.tolerations().raw()) {
    if (kept.contains(without_seconds(old))) continue;
    out.forbidden("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds");
    return;
  }
}

}  // namespace

std::span<const NamedValidationRule> pod_rules() { return kPodChecks; }

void check_pod_update(const json::value& now, const json::value& before, std::string_view subresource, Findings& out) {
  check_pod_annotations_update(now, before, out);
  check_images(now, out);
  if (subresource == "resize") return check_pod_resize(now, before, out);
  view::PodSpec spec = view::Pod(now).spec(), old = view::Pod(before).spec();
  if (!spec || !old || same_json(spec.raw(), old.raw())) return;
  for (std::string_view list : {"containers", "initContainers"}) {
    if (get_array(spec.raw(), list).size() != get_array(old.raw(), list).size()) {
      out.forbidden("spec." + std::string(list), "pod updates may not add or remove containers");
      return;
    }
  }
  if (old.has_active_deadline_seconds()) {
    int64_t seconds = spec.active_deadline_seconds();
    if (!spec.has_active_deadline_seconds())
      out.invalid_json("spec.activeDeadlineSeconds", json::value(), "must not update from a positive integer to nil value");
    else if (seconds > old.active_deadline_seconds()) {
      out.invalid("spec.activeDeadlineSeconds", seconds, "must be less than or equal to previous value");
    }
  }
  check_tolerations_only_grow(spec, old, out);
  check_gates_only_go(now, before, out);
  check_pod_subresource(now, before, subresource, out);
  if (!old.scheduling_gates().empty()) {
    check_node_selector_grows(spec, old, out);
    check_node_affinity_grows(spec, old, out);
  }
  std::vector<std::string> changed = differing_fields(without_what_may_change(spec.raw(), old.raw(), subresource), old.raw());
  if (!changed.empty()) out.forbidden("spec", std::string(kMayChange) + "\nchanged: " + join(changed, ", "));
}

}  // namespace coracle::schema

// SPDX-License-Identifier: Apache-2.0
// Validation of ephemeral containers, which are for debugging only, and of settings of other containers that depend on the pod:
// devices, sleep hooks, stop signals, the operating system. Source: core/v1 API reference.
#include <algorithm>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "runtime/base/text.h"
#include "store/kinds/pod/pod_kinds.h"
#include "store/kinds/pod/pod_validation.h"
#include "store/object/quantity.h"
#include "store/schema/views.h"

namespace coracle::schema {
namespace {

template <typename View>
std::set<std::string_view> texts_in(view::Range<View> list, std::string_view (View::*field)() const) {
  std::set<std::string_view> out;
  for (View one : list) out.insert((one.*field)());
  return out;
}

void check_debug_container(const json::value& container, const std::set<std::string_view>& others, const std::string& path,
                           Findings& out) {
  constexpr std::string_view kWords = "cannot be set for an Ephemeral Container";
  std::string_view target = view::EphemeralContainer(container).target_container_name();
  if (!target.empty() && !others.contains(target)) out.not_found(sub(path, "targetContainerName"), target);
  for (std::string_view field : {"ports", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle", "resizePolicy",
                                 "restartPolicy", "restartPolicyRules"}) {
    const json::value* found = find(container, field);
    bool empty = !found || (found->is_array() && found->get_array().empty());
    if (!empty) out.forbidden(sub(path, field), kWords);
  }
  if (!view::Container(container).resources().members().empty()) out.forbidden(sub(path, "resources"), kWords);
  view::Range<view::VolumeMount> mounts = view::Container(container).volume_mounts();
  for (size_t i = 0; i < mounts.size(); ++i) {
    std::string at = item(sub(path, "volumeMounts"), i);
    if (!mounts[i].sub_path().empty()) out.forbidden(sub(at, "subPath"), kWords);
    if (!mounts[i].sub_path_expr().empty()) out.forbidden(sub(at, "subPathExpr"), kWords);
  }
}

struct PodVolumes {
  std::set<std::string_view> all, claims;  // by name; claims: those that may be block devices
};

PodVolumes volumes_of(view::PodSpec spec) {
  PodVolumes volumes{texts_in(spec.volumes(), &view::Volume::name), {}};
  for (view::Volume volume : spec.volumes()) {
    if (volume.has_persistent_volume_claim() || volume.has_ephemeral()) volumes.claims.insert(volume.name());
  }
  return volumes;
}

void check_devices(const PodVolumes& pod, view::Container container, const std::string& path, Findings& out) {
  std::set<std::string_view> mounted = texts_in(container.volume_mounts(), &view::VolumeMount::name),
                             places = texts_in(container.volume_mounts(), &view::VolumeMount::mount_path), names, paths;
  view::Range<view::VolumeDevice> devices = container.volume_devices();
  for (size_t i = 0; i < devices.size(); ++i) {
    std::string at = item(sub(path, "volumeDevices"), i);
    std::string_view name = devices[i].name(), place = devices[i].device_path();
    if (!names.insert(name).second) out.invalid(sub(at, "name"), name, "must be unique");
    if (!name.empty() && !pod.all.contains(name)) out.not_found(sub(at, "name"), name);
    if (pod.all.contains(name) && !pod.claims.contains(name)) {
      out.invalid(sub(at, "name"), name, "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode");
    }
    if (!paths.insert(place).second) out.invalid(sub(at, "devicePath"), place, "must be unique");
    for (std::string_view part : split(place, '/')) {
      if (part == "..") out.invalid(sub(at, "devicePath"), place, "can not contain backsteps ('..')");
    }
    if (mounted.contains(name)) out.invalid(sub(at, "name"), name, "must not already exist in volumeMounts");
    if (!place.empty() && places.contains(place))
      out.invalid(sub(at, "devicePath"), place, "must not already exist as a path in volumeMounts");
  }
}

void check_propagation(view::Container container, const std::string& path, Findings& out) {
  view::Range<view::VolumeMount> mounts = container.volume_mounts();
  for (size_t i = 0; i < mounts.size(); ++i) {
    bool both_ways = mounts[i].mount_propagation() == "Bidirectional";
    if (!both_ways || container.security_context().privileged()) continue;
    out.forbidden(sub(item(sub(path, "volumeMounts"), i), "mountPropagation"),
                  "Bidirectional mount propagation is available only to privileged containers");
  }
}

void check_hooks(view::PodSpec spec, view::Container container, const std::string& path, Findings& out) {
  int64_t grace = spec.termination_grace_period_seconds();
  view::Lifecycle lifecycle = container.lifecycle();
  for (auto [hook, handler] : {std::pair("postStart", lifecycle.post_start()), std::pair("preStop", lifecycle.pre_stop())}) {
    int64_t seconds = handler.sleep().seconds();
    if (!handler.has_sleep() || (seconds >= 0 && seconds <= grace)) continue;
    out.invalid(sub(sub(sub(path, "lifecycle"), hook), "sleep"), seconds,
                "must be non-negative and less than terminationGracePeriodSeconds (" + std::to_string(grace) + ")");
  }
  if (lifecycle.has_stop_signal() && spec.os().name().empty()) {
    out.forbidden(sub(path, "lifecycle.stopSignal"), "may not be set for containers with empty `spec.os.name`");
  }
}

void check_resize_policies(view::PodSpec spec, view::Container container, const std::string& path, Findings& out) {
  view::Range<view::ContainerResizePolicy> policies = container.resize_policy();
  std::string at = sub(path, "resizePolicy");
  std::set<std::string_view> seen;
  for (size_t i = 0; i < policies.size(); ++i) {
    std::string_view name = policies[i].resource_name(), policy = policies[i].restart_policy();
    if (!seen.insert(name).second) out.duplicate(item(at, i), name);
    if (!name.empty() && name != "cpu" && name != "memory") out.not_supported(at, name, {"cpu", "memory"});
    if (!policy.empty() && policy != "NotRequired" && policy != "RestartContainer") {
      out.not_supported(at, policy, {"NotRequired", "RestartContainer"});
    }
    if (spec.restart_policy() == "Never" && policy == "RestartContainer") {
      out.invalid(at, policy, "must be 'NotRequired' when `restartPolicy` is 'Never'");
    }
  }
}

bool is_sysctl(std::string_view name) {
  if (name.size() > 253) return false;
  std::string dotted(name);
  for (char& c : dotted) {
    if (c == '/') c = '.';
  }
  for (std::string_view part : split(dotted, '.')) {
    auto good = [](char c, bool inner) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (inner && (c == '-' || c == '_'));
    };
    if (part.empty() || !good(part.front(), false) || !good(part.back(), false)) return false;
    for (char c : part) {
      if (!good(c, true)) return false;
    }
  }
  return true;
}

void check_sysctls(view::PodSpec spec, const std::string& path, Findings& out) {
  view::Range<view::Sysctl> sysctls = spec.security_context().sysctls();
  std::set<std::string_view> seen;
  for (size_t i = 0; i < sysctls.size(); ++i) {
    std::string at = sub(item(sub(path, "securityContext.sysctls"), i), "name");
    std::string_view name = sysctls[i].name();
    if (name.empty()) continue;  // reported by the tables
    if (!is_sysctl(name)) {
      out.invalid(at, name,
                  "must have at most 253 characters and match regex "
                  "^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$");
    } else if (!seen.insert(name).second) {
      out.duplicate(at, name);
    }
    bool net = name.starts_with("net.") || name.starts_with("net/");
    bool ipc = name.starts_with("kernel.shm") || name.starts_with("kernel.msg") || name == "kernel.sem" ||
               name.starts_with("fs.mqueue.");
    if (net && spec.host_network()) out.invalid(at, name, "may not be specified when 'hostNetwork' is true");
    if (ipc && spec.host_ipc()) out.invalid(at, name, "may not be specified when 'hostIPC' is true");
  }
}

void check_claims(view::PodSpec spec, const std::string& path, Findings& out) {
  view::Range<view::PodResourceClaim> claims = spec.resource_claims();
  std::set<std::string_view> seen;
  for (size_t i = 0; i < claims.size(); ++i) {
    std::string at = item(sub(path, "resourceClaims"), i);
    std::string_view name = claims[i].name();
    if (!name.empty() && !seen.insert(name).second) out.duplicate(sub(at, "name"), name);
    else if (!name.empty()) out.invalid_all(sub(at, "name"), name, dns_label_problems(name));
    bool claim = claims[i].has_resource_claim_name(), made = claims[i].has_resource_claim_template_name();
    if (claim && made)
      out.invalid_json(at, claims[i].raw(), "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified");
    if (!claim && !made)
      out.invalid_json(at, claims[i].raw(), "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`");
    for (auto [field, is_given, text] :
         {std::tuple("resourceClaimName", claim, claims[i].resource_claim_name()),
          std::tuple("resourceClaimTemplateName", made, claims[i].resource_claim_template_name())}) {
      if (is_given) out.invalid_all(sub(at, field), text, dns_subdomain_problems(text));
    }
  }
}

// What a container uses of the pod's claims: a whole claim or some of its requests.
void check_used_claims(view::Container container, const std::set<std::string_view>& claims, const std::string& path,
                       Findings& out) {
  view::Range<view::ResourceClaim> used = container.resources().claims();
  std::set<std::string> seen;               // "claim" and "claim/request"
  std::set<std::string_view> seen_in_part;  // claims with a request
  for (size_t i = 0; i < used.size(); ++i) {
    std::string at = item(sub(path, "resources.claims"), i);
    std::string_view name = used[i].name(), request = used[i].request();
    if (name.empty()) {
      out.required(at);
      continue;
    }
    if (!request.empty()) out.invalid_all(sub(at, "request"), request, dns_label_problems(request));
    std::string key = std::string(name) + (request.empty() ? "" : "/" + std::string(request));
    if (seen.contains(std::string(name))) out.duplicate(at, name);
    else if (seen.contains(key)) out.duplicate(at, key);
    else if (request.empty() && seen_in_part.contains(name)) out.duplicate(at, name);
    seen.insert(std::move(key));
    if (!request.empty()) seen_in_part.insert(name);
    if (!claims.contains(name)) out.not_found(at, name);
  }
}

// The highest sum of requests at one time: first each init container with the sidecars that started before it, then all
// containers.
Quantity asked_together(view::PodSpec spec, std::string_view name) {
  Quantity sidecars, most, running;
  for (view::Container container : spec.init_containers()) {
    Quantity own = amount_in(container.resources().requests(), name).value_or(Quantity());
    bool stays = container.restart_policy() == "Always";
    own += sidecars;
    if (stays) sidecars = own;
    most = std::max(most, own);
  }
  for (view::Container container : spec.containers())
    running += amount_in(container.resources().requests(), name).value_or(Quantity());
  running += sidecars;
  return std::max(most, running);
}

// Pod-level resources, and their relation to the containers' resources. Source: KEP-2837.
void check_pod_resources(view::PodSpec spec, const std::string& path, Findings& out) {
  view::ResourceRequirements resources = spec.resources();
  std::string at = sub(path, "resources");
  if (!resources) return;
  if (!resources.claims().empty()) out.forbidden(sub(at, "claims"), "claims cannot be set for Resources at pod-level");
  for (auto [list, amounts] : {std::pair(std::string_view("limits"), &resources.limits()),
                               std::pair(std::string_view("requests"), &resources.requests())}) {
    for (const auto& pair : *amounts) {
      std::string_view name = pair.key();
      auto amount = Quantity::from_json(pair.value());
      std::string here = entry(sub(at, list), name);
      if (name != "cpu" && name != "memory" && !name.starts_with("hugepages-"))
        out.not_supported(here, name, {"cpu", "hugepages-", "memory"});
      if (!amount) continue;
      Quantity asked = list == "requests" ? asked_together(spec, name) : Quantity();
      if (*amount < asked)
        out.invalid(here, amount->text(), "must be greater than or equal to aggregate container requests of " + asked.text());
      view::Range<view::Container> containers = spec.containers();
      for (size_t i = 0; list == "limits" && i < containers.size(); ++i) {
        auto limit = amount_in(containers[i].resources().limits(), name);
        if (limit && *amount < *limit)
          out.invalid(entry(item(sub(at, "containers"), i), name) + ".limits", limit->text(),
                      "must be less than or equal to pod limits of " + amount->text());
      }
    }
  }
}

// Calls `visit` for every container with the path of its security context, if it has one.
template <typename Visit>
void each_security_context(const json::value& spec, const std::string& path, Visit visit) {
  for (std::string_view list : {"initContainers", "containers", "ephemeralContainers"}) {
    const json::array& containers = get_array(spec, list);
    for (size_t i = 0; i < containers.size(); ++i) {
      view::SecurityContext context = view::Container(containers[i]).security_context();
      if (context) visit(context.raw(), sub(item(sub(path, list), i), "securityContext"));
    }
  }
}

bool is_given(const json::value& owner, std::string_view field) {
  const json::value* found = find(owner, field);
  if (!found || found->is_null()) return false;
  return !found->is_array() || !found->get_array().empty();
}

// Fields for Linux only. PodSecurity does not check them in a Windows pod, so they are not allowed in one.
void check_windows(const json::value& spec, const std::string& path, Findings& out) {
  constexpr std::string_view kWords = "cannot be set for a windows pod";
  for (std::string_view field : {"hostUsers", "resources", "shareProcessNamespace"}) {
    if (is_given(spec, field)) out.forbidden(sub(path, field), kWords);
  }
  for (std::string_view field : {"hostPID", "hostIPC"}) {
    if (get_bool(spec, field)) out.forbidden(sub(path, field), kWords);
  }
  const json::value* of_pod = view::PodSpec(spec).security_context().pointer();
  for (std::string_view field :
       {"appArmorProfile", "seLinuxOptions", "seccompProfile", "fsGroup", "fsGroupChangePolicy", "sysctls", "runAsUser",
        "runAsGroup", "supplementalGroups", "supplementalGroupsPolicy", "seLinuxChangePolicy"}) {
    if (of_pod && is_given(*of_pod, field)) out.forbidden(sub(sub(path, "securityContext"), field), kWords);
  }
  each_security_context(spec, path, [&](const json::value& context, const std::string& at) {
    for (std::string_view field :
         {"appArmorProfile", "seLinuxOptions", "seccompProfile", "capabilities", "readOnlyRootFilesystem", "privileged",
          "allowPrivilegeEscalation", "procMount", "runAsUser", "runAsGroup"}) {
      if (is_given(context, field)) out.forbidden(sub(at, field), kWords);
    }
  });
}

void check_linux(const json::value& spec, const std::string& path, Findings& out) {
  constexpr std::string_view kWords = "windows options cannot be set for a linux pod";
  if (view::PodSpec(spec).security_context().has_windows_options())
    out.forbidden(sub(path, "securityContext.windowsOptions"), kWords);
  each_security_context(spec, path, [&](const json::value& context, const std::string& at) {
    if (view::SecurityContext(context).has_windows_options()) out.forbidden(sub(at, "windowsOptions"), kWords);
  });
}

void check_system(const json::value& spec, const std::string& path, Findings& out) {
  std::string_view name = view::PodSpec(spec).os().name();
  if (view::PodSpec(spec).has_os() && name.empty()) out.required(sub(path, "os.name"), "cannot be empty");
  if (!name.empty() && name != "linux" && name != "windows") out.not_supported(sub(path, "os"), name, {"linux", "windows"});
  if (name == "linux") check_linux(spec, path, out);
  if (name == "windows") check_windows(spec, path, out);
}

}  // namespace

void check_surroundings(const json::value& value, const std::string& path, Findings& out) {
  view::PodSpec spec(value);
  check_sysctls(spec, path, out);
  check_claims(spec, path, out);
  check_system(value, path, out);
  check_pod_resources(spec, path, out);
  PodVolumes volumes = volumes_of(spec);
  const std::set<std::string_view> claims = texts_in(spec.resource_claims(), &view::PodResourceClaim::name);
  std::set<std::string_view> others;
  for (std::string_view list : {"containers", "initContainers", "ephemeralContainers"}) {
    const json::array& containers = get_array(value, list);
    for (size_t i = 0; i < containers.size(); ++i) {
      std::string at = item(sub(path, list), i);
      view::Container container(containers[i]);  // debug containers have the same fields
      check_devices(volumes, container, at, out);
      check_propagation(container, at, out);
      check_used_claims(container, claims, at, out);
      if (list == "ephemeralContainers") {
        check_debug_container(containers[i], others, at, out);
        continue;
      }
      check_hooks(spec, container, at, out);
      check_resize_policies(spec, container, at, out);
      others.insert(container.name());
    }
  }
}

}  // namespace coracle::schema

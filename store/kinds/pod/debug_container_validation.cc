// SPDX-License-Identifier: Apache-2.0
// Validation of ephemeral containers, which are for debugging only, and of settings of other containers that depend on the pod:
// devices, sleep hooks, stop signals, the operating system. Source: core/v1 API reference.
#include <algorithm>
#include <optional>
#include <set>

#include "runtime/base/text.h"
#include "store/kinds/pod/pod_kinds.h"
#include "store/kinds/pod/pod_validation.h"
#include "store/object/quantity.h"

namespace coracle::schema {
namespace {

std::set<std::string_view> names_in(const json::array& list, std::string_view field) {
  std::set<std::string_view> out;
  for (const json::value& one : list) out.insert(get_string(one, field));
  return out;
}

void check_debug_container(const json::value& container, const std::set<std::string_view>& others, const std::string& path,
                           Findings& out) {
  constexpr std::string_view kWords = "cannot be set for an Ephemeral Container";
  std::string_view target = get_string(container, "targetContainerName");
  if (!target.empty() && !others.contains(target)) out.not_found(sub(path, "targetContainerName"), target);
  for (std::string_view field : {"ports", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle", "resizePolicy",
                                 "restartPolicy", "restartPolicyRules"}) {
    const json::value* found = find(container, field);
    bool empty = !found || (found->is_array() && found->get_array().empty());
    if (!empty) out.forbidden(sub(path, field), kWords);
  }
  const json::value* resources = find(container, "resources");
  if (resources && resources->is_object() && !resources->get_object().empty()) out.forbidden(sub(path, "resources"), kWords);
  const json::array& mounts = get_array(container, "volumeMounts");
  for (size_t i = 0; i < mounts.size(); ++i) {
    for (std::string_view field : {"subPath", "subPathExpr"}) {
      if (!get_string(mounts[i], field).empty()) out.forbidden(sub(item(sub(path, "volumeMounts"), i), field), kWords);
    }
  }
}

struct PodVolumes {
  std::set<std::string_view> all, claims;  // by name; claims: those that may be block devices
};

PodVolumes volumes_of(const json::value& spec) {
  PodVolumes volumes{names_in(get_array(spec, "volumes"), "name"), {}};
  for (const json::value& volume : get_array(spec, "volumes")) {
    if (find(volume, "persistentVolumeClaim") || find(volume, "ephemeral")) volumes.claims.insert(get_string(volume, "name"));
  }
  return volumes;
}

void check_devices(const PodVolumes& pod, const json::value& container, const std::string& path, Findings& out) {
  std::set<std::string_view> mounted = names_in(get_array(container, "volumeMounts"), "name"),
                             places = names_in(get_array(container, "volumeMounts"), "mountPath"), names, paths;
  const json::array& devices = get_array(container, "volumeDevices");
  for (size_t i = 0; i < devices.size(); ++i) {
    std::string at = item(sub(path, "volumeDevices"), i);
    std::string_view name = get_string(devices[i], "name"), place = get_string(devices[i], "devicePath");
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

void check_propagation(const json::value& container, const std::string& path, Findings& out) {
  const json::array& mounts = get_array(container, "volumeMounts");
  for (size_t i = 0; i < mounts.size(); ++i) {
    bool both_ways = get_string(mounts[i], "mountPropagation") == "Bidirectional";
    if (!both_ways || get_bool(container, "securityContext.privileged")) continue;
    out.forbidden(sub(item(sub(path, "volumeMounts"), i), "mountPropagation"),
                  "Bidirectional mount propagation is available only to privileged containers");
  }
}

void check_hooks(const json::value& spec, const json::value& container, const std::string& path, Findings& out) {
  int64_t grace = get_int(spec, "terminationGracePeriodSeconds");
  for (std::string_view hook : {"postStart", "preStop"}) {
    const json::value* sleep = find_keys(container, {"lifecycle", hook, "sleep"});
    int64_t seconds = sleep ? get_int(*sleep, "seconds") : 0;
    if (!sleep || (seconds >= 0 && seconds <= grace)) continue;
    out.invalid(sub(sub(sub(path, "lifecycle"), hook), "sleep"), seconds,
                "must be non-negative and less than terminationGracePeriodSeconds (" + std::to_string(grace) + ")");
  }
  if (find(container, "lifecycle.stopSignal") && get_string(spec, "os.name").empty()) {
    out.forbidden(sub(path, "lifecycle.stopSignal"), "may not be set for containers with empty `spec.os.name`");
  }
}

void check_resize_policies(const json::value& spec, const json::value& container, const std::string& path, Findings& out) {
  const json::array& policies = get_array(container, "resizePolicy");
  std::string at = sub(path, "resizePolicy");
  std::set<std::string_view> seen;
  for (size_t i = 0; i < policies.size(); ++i) {
    std::string_view name = get_string(policies[i], "resourceName"), policy = get_string(policies[i], "restartPolicy");
    if (!seen.insert(name).second) out.duplicate(item(at, i), name);
    if (!name.empty() && name != "cpu" && name != "memory") out.not_supported(at, name, {"cpu", "memory"});
    if (!policy.empty() && policy != "NotRequired" && policy != "RestartContainer") {
      out.not_supported(at, policy, {"NotRequired", "RestartContainer"});
    }
    if (get_string(spec, "restartPolicy") == "Never" && policy == "RestartContainer") {
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

void check_sysctls(const json::value& spec, const std::string& path, Findings& out) {
  const json::array& sysctls = get_array(spec, "securityContext.sysctls");
  std::set<std::string_view> seen;
  for (size_t i = 0; i < sysctls.size(); ++i) {
    std::string at = sub(item(sub(path, "securityContext.sysctls"), i), "name");
    std::string_view name = get_string(sysctls[i], "name");
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
    if (net && get_bool(spec, "hostNetwork")) out.invalid(at, name, "may not be specified when 'hostNetwork' is true");
    if (ipc && get_bool(spec, "hostIPC")) out.invalid(at, name, "may not be specified when 'hostIPC' is true");
  }
}

void check_claims(const json::value& spec, const std::string& path, Findings& out) {
  const json::array& claims = get_array(spec, "resourceClaims");
  std::set<std::string_view> seen;
  for (size_t i = 0; i < claims.size(); ++i) {
    std::string at = item(sub(path, "resourceClaims"), i);
    std::string_view name = get_string(claims[i], "name");
    if (!name.empty() && !seen.insert(name).second) out.duplicate(sub(at, "name"), name);
    else if (!name.empty()) out.invalid_all(sub(at, "name"), name, dns_label_problems(name));
    bool claim = find(claims[i], "resourceClaimName"), made = find(claims[i], "resourceClaimTemplateName");
    if (claim && made)
      out.invalid_json(at, claims[i], "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified");
    if (!claim && !made) out.invalid_json(at, claims[i], "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`");
    for (std::string_view field : {"resourceClaimName", "resourceClaimTemplateName"}) {
      std::string_view text = get_string(claims[i], field);
      if (find(claims[i], field)) out.invalid_all(sub(at, field), text, dns_subdomain_problems(text));
    }
  }
}

// What a container uses of the pod's claims: a whole claim or some of its requests.
void check_used_claims(const json::value& container, const std::set<std::string_view>& claims, const std::string& path,
                       Findings& out) {
  const json::array& used = get_array(container, "resources.claims");
  std::set<std::string> seen;               // "claim" and "claim/request"
  std::set<std::string_view> seen_in_part;  // claims with a request
  for (size_t i = 0; i < used.size(); ++i) {
    std::string at = item(sub(path, "resources.claims"), i);
    std::string_view name = get_string(used[i], "name"), request = get_string(used[i], "request");
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

std::optional<Quantity> amount_in(const json::value& owner, std::string_view list, std::string_view name) {
  const json::value* found = get_object(owner, sub("resources", list)).if_contains(name);
  auto amount = found ? Quantity::from_json(*found) : Quantity();
  return found && amount ? std::optional(*amount) : std::nullopt;
}

// The highest sum of requests at one time: first each init container with the sidecars that started before it, then all
// containers.
Quantity asked_together(const json::value& spec, std::string_view name) {
  Quantity sidecars, most, running;
  for (const json::value& container : get_array(spec, "initContainers")) {
    Quantity own = amount_in(container, "requests", name).value_or(Quantity());
    bool stays = get_string(container, "restartPolicy") == "Always";
    own += sidecars;
    if (stays) sidecars = own;
    most = std::max(most, own);
  }
  for (const json::value& container : get_array(spec, "containers"))
    running += amount_in(container, "requests", name).value_or(Quantity());
  running += sidecars;
  return std::max(most, running);
}

// Pod-level resources, and their relation to the containers' resources. Source: KEP-2837.
void check_pod_resources(const json::value& spec, const std::string& path, Findings& out) {
  const json::value* resources = find(spec, "resources");
  std::string at = sub(path, "resources");
  if (!resources) return;
  if (!get_array(*resources, "claims").empty())
    out.forbidden(sub(at, "claims"), "claims cannot be set for Resources at pod-level");
  for (std::string_view list : {"limits", "requests"}) {
    for (const auto& pair : get_object(*resources, list)) {
      std::string_view name = pair.key();
      auto amount = Quantity::from_json(pair.value());
      std::string here = entry(sub(at, list), name);
      if (name != "cpu" && name != "memory" && !name.starts_with("hugepages-"))
        out.not_supported(here, name, {"cpu", "hugepages-", "memory"});
      if (!amount) continue;
      Quantity asked = list == "requests" ? asked_together(spec, name) : Quantity();
      if (*amount < asked)
        out.invalid(here, amount->text(), "must be greater than or equal to aggregate container requests of " + asked.text());
      const json::array& containers = get_array(spec, "containers");
      for (size_t i = 0; list == "limits" && i < containers.size(); ++i) {
        auto limit = amount_in(containers[i], "limits", name);
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
      const json::value* context = find(containers[i], "securityContext");
      if (context) visit(*context, sub(item(sub(path, list), i), "securityContext"));
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
  const json::value* of_pod = find(spec, "securityContext");
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
  if (find(spec, "securityContext.windowsOptions")) out.forbidden(sub(path, "securityContext.windowsOptions"), kWords);
  each_security_context(spec, path, [&](const json::value& context, const std::string& at) {
    if (find(context, "windowsOptions")) out.forbidden(sub(at, "windowsOptions"), kWords);
  });
}

void check_system(const json::value& spec, const std::string& path, Findings& out) {
  std::string_view name = get_string(spec, "os.name");
  if (find(spec, "os") && name.empty()) out.required(sub(path, "os.name"), "cannot be empty");
  if (!name.empty() && name != "linux" && name != "windows") out.not_supported(sub(path, "os"), name, {"linux", "windows"});
  if (name == "linux") check_linux(spec, path, out);
  if (name == "windows") check_windows(spec, path, out);
}

}  // namespace

void check_surroundings(const json::value& spec, const std::string& path, Findings& out) {
  check_sysctls(spec, path, out);
  check_claims(spec, path, out);
  check_system(spec, path, out);
  check_pod_resources(spec, path, out);
  PodVolumes volumes = volumes_of(spec);
  const std::set<std::string_view> claims = names_in(get_array(spec, "resourceClaims"), "name");
  std::set<std::string_view> others;
  for (std::string_view list : {"containers", "initContainers", "ephemeralContainers"}) {
    const json::array& containers = get_array(spec, list);
    for (size_t i = 0; i < containers.size(); ++i) {
      std::string at = item(sub(path, list), i);
      check_devices(volumes, containers[i], at, out);
      check_propagation(containers[i], at, out);
      check_used_claims(containers[i], claims, at, out);
      if (list == "ephemeralContainers") {
        check_debug_container(containers[i], others, at, out);
        continue;
      }
      check_hooks(spec, containers[i], at, out);
      check_resize_policies(spec, containers[i], at, out);
      others.insert(get_string(containers[i], "name"));
    }
  }
}

}  // namespace coracle::schema

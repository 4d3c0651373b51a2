// SPDX-License-Identifier: Apache-2.0
// See pod_security_checks.h.
#include "daemon/admission/pod_security_checks.h"

#include <algorithm>
#include <array>
#include <functional>
#include <set>

#include "daemon/admission/pod.h"
#include "runtime/base/text.h"

namespace coracle::admission {
namespace {

using Words = std::vector<std::string>;
using Sorted = std::set<std::string>;

constexpr std::string_view kAppArmorPrefix = "container.apparmor.security.beta.kubernetes.io/";
constexpr std::string_view kSeccompPod = "seccomp.security.alpha.kubernetes.io/pod";
constexpr std::string_view kSeccompPrefix = "container.seccomp.security.alpha.kubernetes.io/";

std::string listed(const Words& words) { return words.empty() ? "" : "\"" + join(words, "\", \"") + "\""; }
std::string listed(const Sorted& words) { return listed(Words(words.begin(), words.end())); }
std::string plain(const Sorted& words) { return join(Words(words.begin(), words.end()), ", "); }
const char* plural(size_t count, const char* one, const char* many) { return count == 1 ? one : many; }

void each(const CheckedPod& pod, const std::function<void(view::Container container)>& look) {
  visit_containers(pod.spec, [&](view::Container container, std::string_view, size_t) { look(container); });
}

// container "a" · containers "a", "b"
std::string containers(const Words& names) { return plural(names.size(), "container ", "containers ") + listed(names); }

Words those(const CheckedPod& pod, const std::function<bool(view::Container container)>& bad) {
  Words names;
  each(pod, [&](view::Container container) {
    if (bad(container)) names.emplace_back(container.name());
  });
  return names;
}

bool is_windows(const CheckedPod& pod) { return pod.spec.os().name() == "windows"; }
bool has_own_users(const CheckedPod& pod) { return !pod.spec.host_users_or(true); }

// The pod itself and the containers that have a profile of a forbidden type. `profile_of`: the profile in a security context.
struct Setters {
  Words who;
  Sorted values;
};
template <typename F>
Setters bad_profiles(const CheckedPod& pod, F profile_of) {
  Setters out;
  auto bad = [&](auto of) {  // the pod's spec or a container
    auto profile = profile_of(of.security_context());
    bool good = !profile || profile.type() == "RuntimeDefault" || profile.type() == "Localhost";
    if (!good) out.values.emplace(profile.type());
    return !good;
  };
  bool of_pod = bad(pod.spec);
  Words names = those(pod, bad);
  if (of_pod) out.who.emplace_back("pod");
  if (!names.empty()) out.who.push_back(containers(names));
  return out;
}

Verdict sysctls_beyond(const CheckedPod& pod, size_t allowed) {
  static constexpr std::array kSafe = {"kernel.shm_rmid_forced",
                                       "net.ipv4.ip_local_port_range",
                                       "net.ipv4.tcp_syncookies",
                                       "net.ipv4.ping_group_range",
                                       "net.ipv4.ip_unprivileged_port_start",
                                       "net.ipv4.ip_local_reserved_ports",
                                       "net.ipv4.tcp_keepalive_time",
                                       "net.ipv4.tcp_fin_timeout",
                                       "net.ipv4.tcp_keepalive_intvl",
                                       "net.ipv4.tcp_keepalive_probes",
                                       "net.ipv4.tcp_rmem",
                                       "net.ipv4.tcp_wmem"};
  Words forbidden;
  for (view::Sysctl sysctl : pod.spec.security_context().sysctls())
    if (std::find(kSafe.begin(), kSafe.begin() + allowed, sysctl.name()) == kSafe.begin() + allowed)
      forbidden.emplace_back(sysctl.name());
  if (forbidden.empty()) return std::nullopt;
  return Violation{"forbidden sysctls", join(forbidden, ", ")};
}

Verdict se_linux_beyond(const CheckedPod& pod, size_t allowed) {
  static constexpr std::array kTypes = {"", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"};
  Sorted types;
  bool user = false, role = false;
  auto bad = [&](auto of) {  // the pod's spec or a container
    view::SELinuxOptions options = of.security_context().se_linux_options();
    if (!options) return false;
    std::string_view type = options.type();
    bool wrong_type = std::find(kTypes.begin(), kTypes.begin() + allowed, type) == kTypes.begin() + allowed;
    if (wrong_type) types.emplace(type);
    bool has_user = !options.user().empty(), has_role = !options.role().empty();
    user |= has_user, role |= has_role;
    return wrong_type || has_user || has_role;
  };
  Words who;
  if (bad(pod.spec)) who.emplace_back("pod");
  if (Words names = those(pod, bad); !names.empty()) who.push_back(containers(names));
  if (who.empty()) return std::nullopt;
  Words what;
  if (!types.empty()) what.push_back(plural(types.size(), "type ", "types ") + listed(types));
  if (user) what.emplace_back("user may not be set");
  if (role) what.emplace_back("role may not be set");
  return Violation{"seLinuxOptions", join(who, " and ") + " set forbidden securityContext.seLinuxOptions: " + join(what, "; ")};
}

}  // namespace

// ---- baseline ----

Verdict check_app_armor(const CheckedPod& pod) {
  Setters bad = bad_profiles(pod, [](auto context) { return context.app_armor_profile(); });
  Words values(bad.values.begin(), bad.values.end());
  Sorted annotations;
  for (const auto& annotation : pod.metadata.annotations()) {
    std::string_view profile =
        annotation.value().is_string() ? std::string_view(annotation.value().get_string()) : std::string_view();
    bool allowed = profile.empty() || profile == "runtime/default" || profile.starts_with("localhost/");
    if (std::string_view(annotation.key()).starts_with(kAppArmorPrefix) && !allowed)
      annotations.insert(std::string(annotation.key()) + "=" + quoted(profile));
  }
  if (!annotations.empty()) {
    values.insert(values.end(), annotations.begin(), annotations.end());
    bad.who.emplace_back(plural(annotations.size(), "annotation", "annotations"));
  }
  if (bad.who.empty()) return std::nullopt;
  return Violation{plural(values.size(), "forbidden AppArmor profile", "forbidden AppArmor profiles"),
                   join(bad.who, " and ") + " must not set AppArmor profile type to " + listed(values)};
}

Verdict check_capabilities_baseline(const CheckedPod& pod) {
  static constexpr std::array kDefault = {"AUDIT_WRITE", "CHOWN",  "DAC_OVERRIDE",     "FOWNER",  "FSETID",
                                          "KILL",        "MKNOD",  "NET_BIND_SERVICE", "SETFCAP", "SETGID",
                                          "SETPCAP",     "SETUID", "SYS_CHROOT"};
  Sorted forbidden;
  Words names = those(pod, [&](view::Container container) {
    bool bad = false;
    for (std::string_view name : container.security_context().capabilities().add()) {
      if (std::find(kDefault.begin(), kDefault.end(), name) != kDefault.end()) continue;
      forbidden.emplace(name);
      bad = true;
    }
    return bad;
  });
  if (names.empty()) return std::nullopt;
  return Violation{"non-default capabilities",
                   containers(names) + " must not include " + listed(forbidden) + " in securityContext.capabilities.add"};
}

Verdict check_host_namespaces(const CheckedPod& pod) {
  Words shared;
  if (pod.spec.host_network()) shared.emplace_back("hostNetwork=true");
  if (pod.spec.host_pid()) shared.emplace_back("hostPID=true");
  if (pod.spec.host_ipc()) shared.emplace_back("hostIPC=true");
  if (shared.empty()) return std::nullopt;
  return Violation{"host namespaces", join(shared, ", ")};
}

Verdict check_host_path_volumes(const CheckedPod& pod) {
  Words names;
  for (view::Volume volume : pod.spec.volumes())
    if (volume.has_host_path()) names.emplace_back(volume.name());
  if (names.empty()) return std::nullopt;
  return Violation{"hostPath volumes", plural(names.size(), "volume ", "volumes ") + listed(names)};
}

Verdict check_host_ports(const CheckedPod& pod) {
  Sorted ports;
  Words names = those(pod, [&](view::Container container) {
    bool bad = false;
    for (view::ContainerPort port : container.ports())
      if (int64_t number = port.host_port()) ports.insert(std::to_string(number)), bad = true;
    return bad;
  });
  if (names.empty()) return std::nullopt;
  return Violation{"hostPort", containers(names) + plural(names.size(), " uses ", " use ") +
                                   plural(ports.size(), "hostPort ", "hostPorts ") + plain(ports)};
}

Verdict check_host_probes(const CheckedPod& pod) {
  Sorted names, hosts;
  each(pod, [&](view::Container container) {
    auto look = [&](auto handler) {  // a probe or a handler of a hook
      for (std::string_view host : {handler.http_get().host(), handler.tcp_socket().host()})
        if (!host.empty()) names.emplace(container.name()), hosts.emplace(host);
    };
    look(container.liveness_probe()), look(container.readiness_probe()), look(container.startup_probe());
    look(container.lifecycle().post_start()), look(container.lifecycle().pre_stop());
  });
  if (names.empty()) return std::nullopt;
  return Violation{"probe or lifecycle host",
                   containers(Words(names.begin(), names.end())) + plural(names.size(), " uses ", " use ") +
                       plural(hosts.size(), "probe or lifecycle host ", "probe or lifecycle hosts ") + listed(hosts)};
}

Verdict check_privileged(const CheckedPod& pod) {
  Words names = those(pod, [](view::Container container) { return container.security_context().privileged(); });
  if (names.empty()) return std::nullopt;
  return Violation{"privileged", containers(names) + " must not set securityContext.privileged=true"};
}

Verdict check_proc_mount(const CheckedPod& pod) {
  Sorted types;
  Words names = those(pod, [&](view::Container container) {
    view::SecurityContext context = container.security_context();
    if (!context.has_proc_mount() || context.proc_mount() == "Default") return false;
    types.emplace(context.proc_mount());
    return true;
  });
  if (names.empty()) return std::nullopt;
  return Violation{"procMount", containers(names) + " must not set securityContext.procMount to " + listed(types)};
}

Verdict check_proc_mount_1_35(const CheckedPod& pod) { return has_own_users(pod) ? std::nullopt : check_proc_mount(pod); }
Verdict check_se_linux(const CheckedPod& pod) { return se_linux_beyond(pod, 4); }
Verdict check_se_linux_1_31(const CheckedPod& pod) { return se_linux_beyond(pod, 5); }

Verdict check_seccomp_annotations(const CheckedPod& pod) {
  const json::object& annotations = pod.metadata.annotations();
  Sorted forbidden;
  auto look = [&](const std::string& name) {
    const json::value* value = annotations.if_contains(name);
    if (!value) return;
    std::string_view profile = value->is_string() ? std::string_view(value->get_string()) : std::string_view();
    bool allowed = profile == "runtime/default" || profile == "docker/default" || profile.starts_with("localhost/");
    if (!allowed) forbidden.insert(name + "=" + quoted(profile));
  };
  look(std::string(kSeccompPod));
  each(pod, [&](view::Container container) { look(std::string(kSeccompPrefix).append(container.name())); });
  if (forbidden.empty()) return std::nullopt;
  return Violation{"seccompProfile",
                   plural(forbidden.size(), "forbidden annotation ", "forbidden annotations ") + plain(forbidden)};
}

Verdict check_seccomp_baseline(const CheckedPod& pod) {
  Setters bad = bad_profiles(pod, [](auto context) { return context.seccomp_profile(); });
  if (bad.who.empty()) return std::nullopt;
  return Violation{"seccompProfile",
                   join(bad.who, " and ") + " must not set securityContext.seccompProfile.type to " + listed(bad.values)};
}

Verdict check_sysctls(const CheckedPod& pod) { return sysctls_beyond(pod, 5); }
Verdict check_sysctls_1_27(const CheckedPod& pod) { return sysctls_beyond(pod, 6); }
Verdict check_sysctls_1_29(const CheckedPod& pod) { return sysctls_beyond(pod, 10); }
Verdict check_sysctls_1_32(const CheckedPod& pod) { return sysctls_beyond(pod, 12); }

Verdict check_windows_host_process(const CheckedPod& pod) {
  auto bad = [](auto of) { return of.security_context().windows_options().host_process(); };
  Words who;
  if (bad(pod.spec)) who.emplace_back("pod");
  if (Words names = those(pod, bad); !names.empty()) who.push_back(containers(names));
  if (who.empty()) return std::nullopt;
  return Violation{"hostProcess", join(who, " and ") + " must not set securityContext.windowsOptions.hostProcess=true"};
}

// ---- restricted ----

Verdict check_privilege_escalation(const CheckedPod& pod) {
  Words names =
      those(pod, [](view::Container container) { return container.security_context().allow_privilege_escalation_or(true); });
  if (names.empty()) return std::nullopt;
  return Violation{"allowPrivilegeEscalation != false",
                   containers(names) + " must set securityContext.allowPrivilegeEscalation=false"};
}

Verdict check_privilege_escalation_1_25(const CheckedPod& pod) {
  return is_windows(pod) ? std::nullopt : check_privilege_escalation(pod);
}

Verdict check_capabilities_restricted(const CheckedPod& pod) {
  Words keeping, adding;
  Sorted forbidden;
  each(pod, [&](view::Container container) {
    view::Capabilities capabilities = container.security_context().capabilities();
    auto drops = capabilities.drop();
    if (std::find(drops.begin(), drops.end(), "ALL") == drops.end()) keeping.emplace_back(container.name());
    bool bad = false;
    for (std::string_view capability : capabilities.add())
      if (capability != "NET_BIND_SERVICE") forbidden.emplace(capability), bad = true;
    if (bad) adding.emplace_back(container.name());
  });
  Words what;
  if (!keeping.empty()) what.push_back(containers(keeping) + " must set securityContext.capabilities.drop=[\"ALL\"]");
  if (!adding.empty())
    what.push_back(containers(adding) + " must not include " + listed(forbidden) + " in securityContext.capabilities.add");
  if (what.empty()) return std::nullopt;
  return Violation{"unrestricted capabilities", join(what, "; ")};
}

Verdict check_capabilities_restricted_1_25(const CheckedPod& pod) {
  return is_windows(pod) ? std::nullopt : check_capabilities_restricted(pod);
}

Verdict check_restricted_volumes(const CheckedPod& pod) {
  static constexpr std::array kAllowed = {
      "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "projected", "secret"};
  static constexpr std::array kKnown = {"hostPath",
                                        "gcePersistentDisk",
                                        "awsElasticBlockStore",
                                        "gitRepo",
                                        "nfs",
                                        "iscsi",
                                        "glusterfs",
                                        "rbd",
                                        "flexVolume",
                                        "cinder",
                                        "cephfs",
                                        "flocker",
                                        "fc",
                                        "azureFile",
                                        "vsphereVolume",
                                        "quobyte",
                                        "azureDisk",
                                        "photonPersistentDisk",
                                        "portworxVolume",
                                        "scaleIO",
                                        "storageos"};
  Words names;
  Sorted types;
  for (view::Volume volume : pod.spec.volumes()) {
    auto is = [&](const char* type) { return volume.members().contains(type); };
    if (std::any_of(kAllowed.begin(), kAllowed.end(), is)) continue;
    names.emplace_back(volume.name());
    auto type = std::find_if(kKnown.begin(), kKnown.end(), is);
    types.insert(type == kKnown.end() ? "unknown" : *type);
  }
  if (names.empty()) return std::nullopt;
  return Violation{"restricted volume types",
                   plural(names.size(), "volume ", "volumes ") + listed(names) + plural(names.size(), " uses ", " use ") +
                       plural(types.size(), "restricted volume type ", "restricted volume types ") + listed(types)};
}

Verdict check_run_as_non_root(const CheckedPod& pod) {
  constexpr const char* kReason = "runAsNonRoot != true";
  view::PodSecurityContext of_pod = pod.spec.security_context();
  Words who, names = those(pod, [](view::Container container) { return !container.security_context().run_as_non_root_or(true); });
  if (!of_pod.run_as_non_root_or(true)) who.emplace_back("pod");
  if (!names.empty()) who.push_back(containers(names));
  if (!who.empty()) return Violation{kReason, join(who, " and ") + " must not set securityContext.runAsNonRoot=false"};
  names = those(pod, [&](view::Container container) {
    return !container.security_context().has_run_as_non_root() && !of_pod.run_as_non_root();
  });
  if (names.empty()) return std::nullopt;
  return Violation{kReason, "pod or " + containers(names) + " must set securityContext.runAsNonRoot=true"};
}

Verdict check_run_as_non_root_1_35(const CheckedPod& pod) {
  return has_own_users(pod) ? std::nullopt : check_run_as_non_root(pod);
}

Verdict check_run_as_user(const CheckedPod& pod) {
  auto bad = [](auto of) { return of.security_context().run_as_user_or(1) == 0; };
  Words who;
  if (bad(pod.spec)) who.emplace_back("pod");
  if (Words names = those(pod, bad); !names.empty()) who.push_back(containers(names));
  if (who.empty()) return std::nullopt;
  return Violation{"runAsUser=0", join(who, " and ") + " must not set runAsUser=0"};
}

Verdict check_run_as_user_1_35(const CheckedPod& pod) { return has_own_users(pod) ? std::nullopt : check_run_as_user(pod); }

Verdict check_seccomp_restricted(const CheckedPod& pod) {
  if (auto wrong = check_seccomp_baseline(pod)) return wrong;
  bool of_pod = pod.spec.security_context().has_seccomp_profile();
  Words names =
      those(pod, [&](view::Container container) { return !container.security_context().has_seccomp_profile() && !of_pod; });
  if (names.empty()) return std::nullopt;
  return Violation{"seccompProfile", "pod or " + containers(names) +
                                         " must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\""};
}

Verdict check_seccomp_restricted_1_25(const CheckedPod& pod) {
  return is_windows(pod) ? std::nullopt : check_seccomp_restricted(pod);
}

}  // namespace coracle::admission

// SPDX-License-Identifier: Apache-2.0
// See container_spec.h.
#include "daemon/node/container_spec.h"

#include <algorithm>
#include <array>
#include <set>

#include "daemon/node/environment.h"
#include "daemon/node/id_ranges.h"
#include "daemon/node/resources.h"
#include "runtime/base/signal_name.h"
#include "runtime/base/text.h"

namespace coracle::node {

namespace {

constexpr size_t kImageVolumesMax = 64;  // containerd has no limit; an image with more is considered hostile
constexpr std::string_view kTerminationPath = "/dev/termination-log";
constexpr std::string_view kDefaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

// All capabilities of the kernel. Source: capabilities(7).
constexpr std::array<std::string_view, 41> kCapabilities = {"CAP_AUDIT_CONTROL",   "CAP_AUDIT_READ",   "CAP_AUDIT_WRITE",
                                                            "CAP_BLOCK_SUSPEND",   "CAP_BPF",          "CAP_CHECKPOINT_RESTORE",
                                                            "CAP_CHOWN",           "CAP_DAC_OVERRIDE", "CAP_DAC_READ_SEARCH",
                                                            "CAP_FOWNER",          "CAP_FSETID",       "CAP_IPC_LOCK",
                                                            "CAP_IPC_OWNER",       "CAP_KILL",         "CAP_LEASE",
                                                            "CAP_LINUX_IMMUTABLE", "CAP_MAC_ADMIN",    "CAP_MAC_OVERRIDE",
                                                            "CAP_MKNOD",           "CAP_NET_ADMIN",    "CAP_NET_BIND_SERVICE",
                                                            "CAP_NET_BROADCAST",   "CAP_NET_RAW",      "CAP_PERFMON",
                                                            "CAP_SETFCAP",         "CAP_SETGID",       "CAP_SETPCAP",
                                                            "CAP_SETUID",          "CAP_SYSLOG",       "CAP_SYS_ADMIN",
                                                            "CAP_SYS_BOOT",        "CAP_SYS_CHROOT",   "CAP_SYS_MODULE",
                                                            "CAP_SYS_NICE",        "CAP_SYS_PACCT",    "CAP_SYS_PTRACE",
                                                            "CAP_SYS_RAWIO",       "CAP_SYS_RESOURCE", "CAP_SYS_TIME",
                                                            "CAP_SYS_TTY_CONFIG",  "CAP_WAKE_ALARM"};

std::string capability_name(std::string_view text) {  // NET_ADMIN, cap_net_admin → CAP_NET_ADMIN
  std::string name(text);
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return char(std::toupper(c)); });
  return name == "ALL" || name.starts_with("CAP_") ? name : "CAP_" + name;
}

std::vector<std::string> strings(const json::array& array) {
  std::vector<std::string> list;
  for (const auto& item : array)
    if (item.is_string()) list.emplace_back(item.get_string());
  return list;
}

void replace_option(std::vector<std::string>& options, std::string_view from, std::string_view to) {
  std::replace(options.begin(), options.end(), std::string(from), std::string(to));
}

class SpecMaker {
 public:
  SpecMaker(const json::value& pod, const json::value& container, const ContainerInputs& inputs)
      : pod_(pod), container_(container), inputs_(inputs), spec_(runtime::default_spec()) {}

  Result<runtime::ContainerSpec> make() {
    TRY(set_command());
    set_environment();
    TRY(set_user());
    set_capabilities();
    TRY(set_seccomp());
    spec_.process.apparmor_profile = inputs_.apparmor_profile;
    set_paths();
    set_resources();
    TRY(set_mounts());
    runtime::ContainerSpec made;
    made.image_id = inputs_.image.id;
    made.log.path = inputs_.log_path;
    made.open_stdin = get_bool(container_, "stdin");
    made.stdin_once = get_bool(container_, "stdinOnce");
    made.target = inputs_.target_id;
    made.stop_signal = stop_signal_of(container_, inputs_.image.config);
    made.id = std::string(get_string(container_, "name")) + "-" + std::to_string(inputs_.attempt);
    made.spec = std::move(spec_);
    return made;
  }

 private:
  Result<void> set_command() {
    const auto& image = inputs_.image.config;
    auto command = strings(get_array(container_, "command")), arguments = strings(get_array(container_, "args"));
    TextBudget budget("the container's command", kEnvironmentBytesMax);
    for (auto* list : {&command, &arguments})
      for (auto& word : *list) word = TRY(expand(word, inputs_.environment, budget));
    if (command.empty()) {
      command = image.entrypoint;
      if (arguments.empty()) arguments = image.cmd;
    }
    command.insert(command.end(), arguments.begin(), arguments.end());
    if (command.empty()) return Error(Code::invalid, "no command specified: neither the pod nor the image names one");
    spec_.process.args = std::move(command);
    std::string directory(get_string(container_, "workingDir"));
    if (directory.empty()) directory = image.working_dir;
    spec_.process.cwd = directory.empty() ? "/" : directory;
    spec_.process.terminal = get_bool(container_, "tty");
    return {};
  }

  void set_environment() {
    std::map<std::string, std::string> variables{{"PATH", std::string(kDefaultPath)},
                                                 {"HOSTNAME", inputs_.host_name},
                                                 {"HOME", inputs_.user.home.empty() ? "/" : inputs_.user.home}};
    if (spec_.process.terminal) variables["TERM"] = "xterm";
    for (const auto& entry : inputs_.image.config.env)
      if (size_t equals = entry.find('='); equals != entry.npos) variables[entry.substr(0, equals)] = entry.substr(equals + 1);
    for (const auto& [name, value] : inputs_.environment) variables[name] = value;
    spec_.process.env.clear();
    for (const auto& [name, value] : variables) spec_.process.env.push_back(name + "=" + value);
  }

  Result<void> set_user() {
    oci::User user = inputs_.user;
    if (const auto* group = security_field(pod_, container_, "runAsGroup"); group && group->is_int64())
      user.gid = uint32_t(group->get_int64());
    if (get_string(pod_, "spec.securityContext.supplementalGroupsPolicy") == "Strict") user.additional_gids.clear();
    std::set<uint32_t> known(user.additional_gids.begin(), user.additional_gids.end());  // a pod may name very many
    auto add = [&](int64_t gid) {
      if (known.insert(uint32_t(gid)).second) user.additional_gids.push_back(uint32_t(gid));
    };
    // Includes the primary group: otherwise a process that changes its group would leave a group to which a file denies access.
    // CVE-2022-2995, CVE-2022-36109, CVE-2023-25173.
    add(user.gid);
    for (const auto& gid : get_array(pod_, "spec.securityContext.supplementalGroups"))
      if (gid.is_int64()) add(gid.get_int64());
    if (const auto* gid = find(pod_, "spec.securityContext.fsGroup"); gid && gid->is_int64()) add(gid->get_int64());
    // Checks the uid of the process, whether the image or the pod sets it.
    const auto* non_root = security_field(pod_, container_, "runAsNonRoot");
    if (non_root && non_root->is_bool() && non_root->get_bool() && user.uid == 0)
      return Error(Code::invalid, "container has runAsNonRoot and image will run as root (container: " +
                                      std::string(get_string(container_, "name")) + ")");
    if (has_own_users(pod_)) TRY(check_own_users(user));
    spec_.process.user = std::move(user);
    return {};
  }

  Result<void> check_own_users(const oci::User& user) {
    uint32_t highest = std::max(user.uid, user.gid);
    for (uint32_t gid : user.additional_gids) highest = std::max(highest, gid);
    if (highest < kPodIds) return {};
    return Error(Code::invalid, "id " + std::to_string(highest) + " of container " + std::string(get_string(container_, "name")) +
                                    " is outside of its pod's user namespace: with hostUsers false ids are 0 to " +
                                    std::to_string(kPodIds - 1));
  }

  void set_capabilities() {
    auto& capabilities = spec_.process.capabilities;
    if (!capabilities) capabilities.emplace();
    std::vector<std::string> held = capabilities->bounding;
    if (is_privileged(container_)) {
      held.assign(kCapabilities.begin(), kCapabilities.end());
    } else {
      const json::value* wanted = find(container_, "securityContext.capabilities");
      auto added = wanted ? strings(get_array(*wanted, "add")) : std::vector<std::string>();
      auto dropped = wanted ? strings(get_array(*wanted, "drop")) : std::vector<std::string>();
      for (const auto& text : added)
        if (capability_name(text) == "ALL") held.assign(kCapabilities.begin(), kCapabilities.end());
      for (const auto& text : dropped) {
        std::string name = capability_name(text);
        if (name == "ALL") held.clear();
        std::erase(held, name);
      }
      std::set<std::string> known(held.begin(), held.end());  // a pod may name very many
      for (const auto& text : added) {                        // so "drop ALL, add X" results in X
        std::string name = capability_name(text);
        if (name != "ALL" && known.insert(name).second) held.push_back(std::move(name));
      }
    }
    capabilities->bounding = capabilities->effective = capabilities->permitted = held;
    capabilities->inheritable.clear();
    capabilities->ambient.clear();
    bool may_escalate = true;
    if (const auto* field = find(container_, "securityContext.allowPrivilegeEscalation"); field && field->is_bool())
      may_escalate = field->get_bool();
    spec_.process.no_new_privileges = !may_escalate && !is_privileged(container_);
  }

  Result<void> set_seccomp() {
    spec_.linux_.seccomp.reset();
    if (is_privileged(container_)) return {};
    const json::value* profile = security_field(pod_, container_, "seccompProfile");
    auto type = profile ? get_string(*profile, "type") : std::string_view();
    if (type == "Unconfined") return {};
    if (type == "Localhost") {
      if (!inputs_.local_seccomp || !inputs_.local_seccomp->is_object() || inputs_.local_seccomp->get_object().empty())
        return Error(Code::invalid,
                     "seccomp profile " + coracle::quoted(seccomp_profile_name(pod_, container_)) + " is missing or empty");
      spec_.linux_.seccomp = *inputs_.local_seccomp;
    } else if (type == "RuntimeDefault" || inputs_.seccomp_default) {
      spec_.linux_.seccomp = runtime::default_seccomp();
    }
    return {};
  }

  void set_paths() {
    spec_.root.readonly = get_bool(container_, "securityContext.readOnlyRootFilesystem");
    bool unmasked = get_string(container_, "securityContext.procMount") == "Unmasked";
    if (unmasked || is_privileged(container_)) {
      spec_.linux_.masked_paths.clear();
      spec_.linux_.readonly_paths.clear();
    }
    add_volume_devices();
    if (!is_privileged(container_)) return;
    for (auto& mount : spec_.mounts)
      if (mount.type == "sysfs" || mount.type == "cgroup" || mount.type == "cgroup2") replace_option(mount.options, "ro", "rw");
    auto& devices = spec_.linux_.devices;
    devices.insert(devices.end(), inputs_.host_devices.begin(), inputs_.host_devices.end());
    spec_.linux_.resources.devices = {oci::DeviceRule{.allow = true}};
  }

  void add_volume_devices() {
    for (const VolumeDevice& one : inputs_.devices) {
      spec_.linux_.devices.push_back(one.device);
      spec_.linux_.resources.devices.push_back({.allow = true,
                                                .type = one.device.type,
                                                .major = one.device.major,
                                                .minor = one.device.minor,
                                                .access = one.read_only ? "r" : "rw"});
    }
  }

  void set_resources() {
    auto devices = std::move(spec_.linux_.resources.devices);
    spec_.linux_.resources = container_resources(pod_, container_, inputs_.enforcement);
    spec_.linux_.resources.devices = std::move(devices);
    spec_.process.oom_score_adj = oom_score_adj(pod_, container_, inputs_.machine_memory);
  }

  // The image's volumes stay writable for the container's lifetime, with the image's content. Only a read-only root file system
  // prevents that. Source: containerd's image volumes.
  std::vector<std::string> image_volumes() const {
    std::vector<std::string> places;
    if (!spec_.root.readonly) return places;
    for (const std::string& declared : inputs_.image.config.volumes) {
      std::string place = container_path(declared);
      bool is_taken = place == "/";
      for (std::string_view kernels : {"/proc", "/sys", "/dev"})
        is_taken |= place == kernels || place.starts_with(std::string(kernels) + "/");
      if (!is_taken && places.size() < kImageVolumesMax) places.push_back(std::move(place));
    }
    return places;
  }

  Result<void> set_mounts() {
    std::vector<oci::Mount> mounts;
    std::set<std::string> places;
    auto mounted = [&](const std::string& destination) { return places.count(destination) > 0; };
    for (const auto& volume : inputs_.volumes) {
      oci::Mount mount{.destination = volume.destination,
                       .type = "bind",
                       .source = "volume " + coracle::quoted(volume.name),
                       .options = {"rbind"},
                       .source_fd = volume.source};
      if (volume.id_mapped) mount.options.push_back("idmap");
      // Mounts in another user namespace receive propagation from the host's, never the reverse.
      if (volume.propagation == "Bidirectional" && has_own_users(pod_))
        return Error(Code::invalid, "mountPropagation Bidirectional of volume " + coracle::quoted(volume.name) +
                                        " needs the host's users: with hostUsers false nothing is mounted for the host");
      mount.options.push_back(volume.propagation == "Bidirectional"     ? "rshared"
                              : volume.propagation == "HostToContainer" ? "rslave"
                                                                        : "rprivate");
      mount.options.insert(mount.options.end(), volume.options.begin(), volume.options.end());
      const bool is_read_only = volume.read_only || std::ranges::find(volume.options, "ro") != volume.options.end();
      mount.options.push_back(volume.recursive_read_only ? "rro" : is_read_only ? "ro" : "rw");
      places.insert(mount.destination);
      mounts.push_back(std::move(mount));
    }
    for (const auto& file : inputs_.files) {
      if (!places.insert(file.destination).second) continue;
      bool fixed = spec_.root.readonly && file.destination.starts_with("/etc/");
      mounts.push_back({.destination = file.destination,
                        .type = "bind",
                        .source = file.source,
                        .options = {"bind", "rprivate", fixed ? "ro" : "rw"}});
      if (has_own_users(pod_)) mounts.back().options.push_back("idmap");
    }
    for (const std::string& place : image_volumes())
      if (places.insert(place).second) mounts.push_back({.destination = place, .of_root = true});
    if (!inputs_.shared_memory_dir.empty() && places.insert("/dev/shm").second)
      mounts.push_back({.destination = "/dev/shm",
                        .type = "bind",
                        .source = inputs_.shared_memory_dir,
                        .options = {"rbind", "rprivate", "rw", "nosuid", "nodev", "noexec"}});
    // The pod's own mounts replace defaults at the same path, and deeper paths come later.
    std::erase_if(spec_.mounts, [&](const auto& m) { return mounted(m.destination); });
    auto depth = [](const oci::Mount& m) { return std::count(m.destination.begin(), m.destination.end(), '/'); };
    std::stable_sort(mounts.begin(), mounts.end(), [&](const auto& a, const auto& b) { return depth(a) < depth(b); });
    spec_.mounts.insert(spec_.mounts.end(), std::make_move_iterator(mounts.begin()), std::make_move_iterator(mounts.end()));
    return {};
  }

  const json::value& pod_;
  const json::value& container_;
  const ContainerInputs& inputs_;
  oci::Spec spec_;
};

}  // namespace

std::string user_of(const json::value& pod, const json::value& container, const runtime::ImageConfig& image) {
  const json::value* user = security_field(pod, container, "runAsUser");
  if (user && user->is_int64()) return std::to_string(user->get_int64());
  return image.user;
}

const json::value* security_field(const json::value& pod, const json::value& container, std::string_view field) {
  const auto* own = get_object(container, "securityContext").if_contains(field);
  if (own && !own->is_null()) return own;
  const auto* shared = get_object(pod, "spec.securityContext").if_contains(field);
  return shared && !shared->is_null() ? shared : nullptr;
}

std::string container_path(std::string_view path) {
  std::vector<std::string> parts;
  for (std::string_view part : split(path, '/')) {
    if (part.empty() || part == ".") continue;
    if (part != "..") parts.emplace_back(part);
    else if (!parts.empty()) parts.pop_back();
  }
  return "/" + join(parts, "/");
}

std::array<std::string, 4> managed_places(const json::value& container) {
  auto message = get_string(container, "terminationMessagePath");
  return {"/etc/hosts", "/etc/resolv.conf", "/etc/hostname", container_path(message.empty() ? kTerminationPath : message)};
}

bool is_privileged(const json::value& container) { return get_bool(container, "securityContext.privileged"); }

std::string seccomp_profile_name(const json::value& pod, const json::value& container) {
  const json::value* profile = security_field(pod, container, "seccompProfile");
  if (!profile || is_privileged(container) || get_string(*profile, "type") != "Localhost") return "";
  return std::string(get_string(*profile, "localhostProfile"));
}

Result<runtime::ContainerSpec> make_container_spec(const json::value& pod, const json::value& container,
                                                   const ContainerInputs& inputs) {
  return SpecMaker(pod, container, inputs).make();
}

std::string stop_signal_of(const json::value& container, const runtime::ImageConfig& image) {
  std::string wanted(get_string(container, "lifecycle.stopSignal"));
  if (wanted.empty()) wanted = image.stop_signal;
  return wanted.empty() || !signal_number(wanted) ? "SIGTERM" : wanted;
}

runtime::SandboxSpec make_sandbox_spec(const json::value& pod, std::string_view uid, std::string metadata,
                                       std::string_view cluster_domain, int64_t pids_max) {
  runtime::SandboxSpec spec;
  spec.id = uid;
  spec.metadata = std::move(metadata);
  spec.host_network = get_bool(pod, "spec.hostNetwork");
  spec.host_ipc = get_bool(pod, "spec.hostIPC");
  spec.host_pid = get_bool(pod, "spec.hostPID");
  spec.share_process_namespace = get_bool(pod, "spec.shareProcessNamespace") && !spec.host_pid;
  if (!spec.host_network) {
    spec.hostname = hostname_of(pod);
    std::string full = fqdn_of(pod, cluster_domain);
    if (get_bool(pod, "spec.setHostnameAsFQDN") && !full.empty() && full.size() <= 64) spec.hostname = full;
    // Unprivileged ports below 1024 and ping: the restrictions protect nothing in the pod's own network namespace.
    spec.sysctl = {{"net.ipv4.ip_unprivileged_port_start", "0"}, {"net.ipv4.ping_group_range", "0 2147483647"}};
  }
  for (const auto& sysctl : get_array(pod, "spec.securityContext.sysctls")) {
    std::string name(get_string(sysctl, "name"));
    std::replace(name.begin(), name.end(), '/', '.');
    spec.sysctl[name] = get_string(sysctl, "value");
  }
  spec.resources = pod_resources(pod, pids_max);
  spec.cgroup_class = qos_name(qos_of(pod));
  return spec;
}

}  // namespace coracle::node

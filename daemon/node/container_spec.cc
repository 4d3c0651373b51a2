// SPDX-License-Identifier: Apache-2.0
// See container_spec.h.
#include "daemon/node/container_spec.h"

#include <algorithm>
#include <array>
#include <ranges>
#include <set>

#include "daemon/node/environment.h"
#include "daemon/node/id_ranges.h"
#include "daemon/node/resources.h"
#include "runtime/base/signal_name.h"
#include "runtime/base/text.h"
#include "store/schema/views.h"

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

// Of the container, else of the pod.
view::SeccompProfile seccomp_profile(view::Pod pod, view::Container container) {
  view::SeccompProfile own = container.security_context().seccomp_profile();
  return own ? own : pod.spec().security_context().seccomp_profile();
}

void replace_option(std::vector<std::string>& options, std::string_view from, std::string_view to) {
  std::replace(options.begin(), options.end(), std::string(from), std::string(to));
}

class SpecMaker {
 public:
  SpecMaker(const json::value& pod, const json::value& container, const ContainerInputs& inputs)
      : pod_(pod),
        container_(container),
        pod_security_(view::Pod(pod).spec().security_context()),
        viewed_(container),
        inputs_(inputs),
        spec_(runtime::default_spec()) {}

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
    made.open_stdin = viewed_.stdin();
    made.stdin_once = viewed_.stdin_once();
    made.target = inputs_.target_id;
    made.stop_signal = stop_signal_of(container_, inputs_.image.config);
    made.id = std::string(viewed_.name()) + "-" + std::to_string(inputs_.attempt);
    made.spec = std::move(spec_);
    return made;
  }

 private:
  Result<void> set_command() {
    const auto& image = inputs_.image.config;
    auto command = strings(viewed_.command()), arguments = strings(viewed_.args());
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
    std::string directory(viewed_.working_dir());
    if (directory.empty()) directory = image.working_dir;
    spec_.process.cwd = directory.empty() ? "/" : directory;
    spec_.process.terminal = viewed_.tty();
    return {};
  }

  void set_environment() {
    std::map<std::string, std::string> variables = inputs_.environment;  // the pod's, before the image's, before those of all
    for (const auto& entry : std::views::reverse(inputs_.image.config.env))
      if (size_t equals = entry.find('='); equals != entry.npos)
        variables.try_emplace(entry.substr(0, equals), entry.substr(equals + 1));
    if (spec_.process.terminal) variables.try_emplace("TERM", "xterm");
    variables.try_emplace("PATH", kDefaultPath);
    variables.try_emplace("HOSTNAME", inputs_.host_name);
    variables.try_emplace("HOME", inputs_.user.home.empty() ? "/" : inputs_.user.home);
    spec_.process.env.clear();
    spec_.process.env.reserve(variables.size());
    for (const auto& [name, value] : variables) spec_.process.env.push_back(name + "=" + value);
  }

  Result<void> set_user() {
    oci::User user = inputs_.user;
    view::SecurityContext own = viewed_.security_context();
    if (own.has_run_as_group() || pod_security_.has_run_as_group())
      user.gid = uint32_t(own.run_as_group_or(pod_security_.run_as_group()));
    if (pod_security_.supplemental_groups_policy() == "Strict") user.additional_gids.clear();
    std::set<uint32_t> known(user.additional_gids.begin(), user.additional_gids.end());  // a pod may name very many
    auto add = [&](int64_t gid) {
      if (known.insert(uint32_t(gid)).second) user.additional_gids.push_back(uint32_t(gid));
    };
    // Includes the primary group: otherwise a process that changes its group would leave a group to which a file denies access.
    // CVE-2022-2995, CVE-2022-36109, CVE-2023-25173.
    add(user.gid);
    for (int64_t gid : pod_security_.supplemental_groups()) add(gid);
    if (pod_security_.has_fs_group()) add(pod_security_.fs_group());
    // Checks the uid of the process, whether the image or the pod sets it.
    if (own.run_as_non_root_or(pod_security_.run_as_non_root()) && user.uid == 0)
      return Error(Code::invalid,
                   "container has runAsNonRoot and image will run as root (container: " + std::string(viewed_.name()) + ")");
    if (has_own_users(pod_)) TRY(check_own_users(user));
    spec_.process.user = std::move(user);
    return {};
  }

  Result<void> check_own_users(const oci::User& user) {
    uint32_t highest = std::max(user.uid, user.gid);
    for (uint32_t gid : user.additional_gids) highest = std::max(highest, gid);
    if (highest < kPodIds) return {};
    return Error(Code::invalid, "id " + std::to_string(highest) + " of container " + std::string(viewed_.name()) +
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
      view::Capabilities wanted = viewed_.security_context().capabilities();
      auto added = strings(wanted.add()), dropped = strings(wanted.drop());
      for (const auto& text : added)
        if (capability_name(text) == "ALL") held.assign(kCapabilities.begin(), kCapabilities.end());
      for (const auto& text : dropped) {
        std::string name = capability_name(text);
        if (name == "ALL") held.clear();
        std::erase(held, name);
      }
      for (const auto& text : added) {  // so "drop ALL, add X" results in X
        std::string name = capability_name(text);
        if (name == "ALL" || std::ranges::find(held, name) != held.end()) continue;
        const bool is_known = std::ranges::find(kCapabilities, name) != kCapabilities.end();
        held.push_back(std::move(name));
        if (!is_known) break;  // the runtime refuses it: of very many, the first one is sufficient
      }
    }
    capabilities->bounding = capabilities->effective = capabilities->permitted = held;
    capabilities->inheritable.clear();
    capabilities->ambient.clear();
    bool may_escalate = viewed_.security_context().allow_privilege_escalation_or(true);
    spec_.process.no_new_privileges = !may_escalate && !is_privileged(container_);
  }

  Result<void> set_seccomp() {
    spec_.linux_.seccomp.reset();
    if (is_privileged(container_)) return {};
    auto type = seccomp_profile(view::Pod(pod_), viewed_).type();
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
    spec_.root.readonly = viewed_.security_context().read_only_root_filesystem();
    bool unmasked = viewed_.security_context().proc_mount() == "Unmasked";
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
  const view::PodSecurityContext pod_security_;
  const view::Container viewed_;
  const ContainerInputs& inputs_;
  oci::Spec spec_;
};

}  // namespace

std::string user_of(const json::value& pod, const json::value& container, const runtime::ImageConfig& image) {
  auto user = run_as_user(pod, container);
  return user ? std::to_string(*user) : image.user;
}

std::optional<int64_t> run_as_user(const json::value& pod, const json::value& container) {
  view::SecurityContext own = view::Container(container).security_context();
  view::PodSecurityContext shared = view::Pod(pod).spec().security_context();
  if (!own.has_run_as_user() && !shared.has_run_as_user()) return std::nullopt;
  return own.run_as_user_or(shared.run_as_user());
}

std::string container_path(std::string_view path) {
  std::string out;
  for (std::string_view part : split(path, '/')) {
    if (part.empty() || part == ".") continue;
    if (part != "..") out.append("/").append(part);
    else if (!out.empty()) out.erase(out.rfind('/'));
  }
  return out.empty() ? "/" : out;
}

std::array<std::string, 4> managed_places(const json::value& container) {
  auto message = view::Container(container).termination_message_path();
  return {"/etc/hosts", "/etc/resolv.conf", "/etc/hostname", container_path(message.empty() ? kTerminationPath : message)};
}

bool is_privileged(const json::value& container) { return view::Container(container).security_context().privileged(); }

std::string seccomp_profile_name(const json::value& pod, const json::value& container) {
  view::SeccompProfile profile = seccomp_profile(view::Pod(pod), view::Container(container));
  if (is_privileged(container) || profile.type() != "Localhost") return "";
  return std::string(profile.localhost_profile());
}

Result<runtime::ContainerSpec> make_container_spec(const json::value& pod, const json::value& container,
                                                   const ContainerInputs& inputs) {
  return SpecMaker(pod, container, inputs).make();
}

std::string stop_signal_of(const json::value& container, const runtime::ImageConfig& image) {
  std::string wanted(view::Container(container).lifecycle().stop_signal());
  if (wanted.empty()) wanted = image.stop_signal;
  return wanted.empty() || !signal_number(wanted) ? "SIGTERM" : wanted;
}

runtime::SandboxSpec make_sandbox_spec(const json::value& pod, std::string_view uid, std::string metadata,
                                       std::string_view cluster_domain, int64_t pids_max) {
  view::PodSpec wanted = view::Pod(pod).spec();
  runtime::SandboxSpec spec;
  spec.id = uid;
  spec.metadata = std::move(metadata);
  spec.host_network = wanted.host_network();
  spec.host_ipc = wanted.host_ipc();
  spec.host_pid = wanted.host_pid();
  spec.share_process_namespace = wanted.share_process_namespace() && !spec.host_pid;
  if (!spec.host_network) {
    spec.hostname = hostname_of(pod);
    std::string full = fqdn_of(pod, cluster_domain);
    if (wanted.set_hostname_as_fqdn() && !full.empty() && full.size() <= 64) spec.hostname = full;
    // Unprivileged ports below 1024 and ping: the restrictions protect nothing in the pod's own network namespace.
    spec.sysctl = {{"net.ipv4.ip_unprivileged_port_start", "0"}, {"net.ipv4.ping_group_range", "0 2147483647"}};
  }
  for (view::Sysctl sysctl : wanted.security_context().sysctls()) {
    std::string name(sysctl.name());
    std::replace(name.begin(), name.end(), '/', '.');
    spec.sysctl[name] = sysctl.value();
  }
  spec.resources = pod_resources(pod, pids_max);
  spec.cgroup_class = qos_name(qos_of(pod));
  return spec;
}

}  // namespace coracle::node

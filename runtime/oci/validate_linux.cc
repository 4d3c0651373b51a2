// SPDX-License-Identifier: Apache-2.0
// Checks of `mounts` and `linux`, without resources. See checks.h. Source: runtime-spec config.md "mounts", config-linux.md;
// user_namespaces(7), time_namespaces(7), set_mempolicy(2).
#include <algorithm>
#include <set>

#include "runtime/oci/checks.h"
#include "runtime/oci/validate.h"

namespace coracle::oci {
namespace {

// runc and crun have no limits; these bound the plan's size, which the kernel's limits do not.
constexpr size_t kMountsMax = 1000;  // each may need a descriptor of its own
constexpr size_t kMaskedPathsMax = 256;
constexpr size_t kDevicesMax = 4096;
constexpr size_t kMappingsMax = 340;  // UID_GID_MAP_MAX_EXTENTS
constexpr size_t kInterfaceNameMax = 15;
constexpr uint32_t kFileType = 0170000;  // others include the file type in the mode
constexpr uint32_t kNanosecondsPerSecond = 1000000000;

enum class PolicyNodes : uint8_t { none, any, some };
const std::map<std::string, PolicyNodes> kPolicyModes = {
    {"MPOL_DEFAULT", PolicyNodes::none},       {"MPOL_LOCAL", PolicyNodes::none},
    {"MPOL_PREFERRED", PolicyNodes::any},      {"MPOL_BIND", PolicyNodes::some},
    {"MPOL_INTERLEAVE", PolicyNodes::some},    {"MPOL_WEIGHTED_INTERLEAVE", PolicyNodes::some},
    {"MPOL_PREFERRED_MANY", PolicyNodes::some}};

bool holds(const std::vector<std::string>& list, const std::string& item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

bool stands_beneath(const std::string& path, std::string_view dir) {
  return path == dir || (path.starts_with(dir) && path[dir.size()] == '/');
}

// Later comparisons of destinations are textual, so there must be only one notation.
Result<void> check_is_plain(const Mount& mount) {
  std::string plain = plain_path(mount.destination);
  for (std::string_view place : {"/proc", "/sys", "/dev"})
    if (stands_beneath(plain, place) && mount.destination != plain && mount.destination != plain + "/")
      return bad("mounts: destination " + quoted(mount.destination) + ": write " + quoted(plain));
  return {};
}

Result<void> check_mapping_list(const std::vector<IdMapping>& list, const std::string& field) {
  if (list.size() > kMappingsMax) return Error(Code::too_large, field + ": more than " + std::to_string(kMappingsMax));
  auto check_side = [&](uint32_t IdMapping::*side, const char* name) -> Result<void> {
    std::vector<std::pair<uint64_t, uint64_t>> ranges;
    for (const IdMapping& mapping : list) {
      uint64_t first = mapping.*side, end = first + mapping.size;
      if (end > 0xffffffff) return bad(field + ": " + name + " " + std::to_string(first) + " and size overflow");
      ranges.emplace_back(first, end);
    }
    std::sort(ranges.begin(), ranges.end());
    for (size_t i = 1; i < ranges.size(); ++i)
      if (ranges[i].first < ranges[i - 1].second)
        return bad(field + ": two entries map " + name + " " + std::to_string(ranges[i].first));
    return {};
  };
  for (const IdMapping& mapping : list)
    if (mapping.size == 0) return bad(field + ": size is 0");
  TRY(check_side(&IdMapping::container_id, "containerID"));
  TRY(check_side(&IdMapping::host_id, "hostID"));
  return {};
}

bool is_interface_name(const std::string& name) {
  return !name.empty() && name.size() <= kInterfaceNameMax && name != "." && name != ".." && is_one_line(name) &&
         name.find_first_of("/: ") == name.npos;
}

// "%d" stands for a number. The kernel refuses other names with a % only after it has moved the device. Source:
// __dev_alloc_name()
bool is_name_or_template(const std::string& name) {
  const size_t percent = name.find('%');
  return percent == name.npos || (name.compare(percent, 2, "%d") == 0 && name.find('%', percent + 2) == name.npos);
}

bool same_node(const Device& a, const Device& b) {
  auto kind = [](const Device& device) { return device.type == "u" ? "c" : device.type; };
  return kind(a) == kind(b) && (a.type == "p" || (a.major == b.major && a.minor == b.minor));
}

Result<void> check_device(const Device& device, const std::string& where) {
  if (!is_absolute(device.path)) return bad(where + ".path " + quoted(device.path) + " is not absolute");
  if (climbs(device.path)) return bad(where + ".path " + quoted(device.path) + " holds \"..\"");
  if (device.type != "c" && device.type != "u" && device.type != "b" && device.type != "p")
    return bad(where + ".type " + quoted(device.type) + " of " + quoted(device.path));
  bool has_numbers = device.type != "p";
  if (has_numbers && !is_device_number(device.major, device.minor))
    return bad(where + ": numbers of " + quoted(device.path) + " are out of range");
  if (device.file_mode && (*device.file_mode & ~kFileType) > 07777)
    return bad(where + ".fileMode of " + quoted(device.path) + " is out of range");
  if (device.uid.value_or(0) > kIdMax) return bad(where + ".uid of " + quoted(device.path) + " is out of range");
  if (device.gid.value_or(0) > kIdMax) return bad(where + ".gid of " + quoted(device.path) + " is out of range");
  return {};
}

}  // namespace

const std::vector<std::string>& namespace_names() {
  static const std::vector<std::string> names = {"cgroup", "ipc", "mount", "network", "pid", "time", "user", "uts"};
  return names;
}
std::vector<std::string> memory_policy_modes() {
  std::vector<std::string> out;
  for (const auto& [mode, nodes] : kPolicyModes) out.push_back(mode);
  return out;
}
const std::vector<std::string>& memory_policy_flags() {
  static const std::vector<std::string> flags = {"MPOL_F_NUMA_BALANCING", "MPOL_F_RELATIVE_NODES", "MPOL_F_STATIC_NODES"};
  return flags;
}

bool is_bind(const Mount& mount) {
  return mount.type == "bind" || mount.source_fd ||
         std::any_of(mount.options.begin(), mount.options.end(),
                     [](const std::string& option) { return option == "bind" || option == "rbind"; });
}

Result<void> check_mounts(const Spec& spec) {
  if (spec.mounts.size() > kMountsMax) return Error(Code::too_large, "mounts: more than " + std::to_string(kMountsMax));
  for (const Mount& mount : spec.mounts) {
    if (!is_absolute(mount.destination)) return bad("mounts: destination " + quoted(mount.destination) + " is not absolute");
    if (plain_path(mount.destination) == "/") return bad("mounts: destination \"/\" is the root's place");
    if (climbs(mount.destination)) return bad("mounts: destination " + quoted(mount.destination) + " holds \"..\"");
    TRY(check_is_plain(mount));
    if (has_nul(mount.source) || has_nul(mount.type))
      return bad("mounts: a NUL byte in the mount of " + quoted(mount.destination));
    if (mount.uid_mappings.empty() != mount.gid_mappings.empty())
      return bad("mounts: " + quoted(mount.destination) + " has only one of uidMappings and gidMappings");
    TRY(check_mapping_list(mount.uid_mappings, "mounts: uidMappings of " + mount.destination));
    TRY(check_mapping_list(mount.gid_mappings, "mounts: gidMappings of " + mount.destination));
  }
  return {};
}

// Allowed mounts at and beneath /proc: procfs itself, and files that only contain information. CVE-2019-16884, CVE-2025-52881: a
// manipulated procfs would receive our writes. A bind mount is recognised by its options; its type is ignored.
Result<void> check_procfs(const Spec& spec) {
  static const std::set<std::string> harmless = {"/proc/cpuinfo",
                                                 "/proc/diskstats",
                                                 "/proc/meminfo",
                                                 "/proc/stat",
                                                 "/proc/swaps",
                                                 "/proc/uptime",
                                                 "/proc/loadavg",
                                                 "/proc/slabinfo",
                                                 "/proc/sys/kernel/ns_last_pid",
                                                 "/proc/sys/crypto/fips_enabled"};
  for (const Mount& mount : spec.mounts) {
    std::string place = plain_path(mount.destination);
    if (place == "/proc") {
      bool is_genuine = is_bind(mount) ? !mount.source_fd && plain_path(mount.source) == "/proc" : mount.type == "proc";
      if (!is_genuine) return bad("mounts: only a procfs may stand at /proc");
    } else if (place.starts_with("/proc/") && !harmless.count(place)) {
      return bad("mounts: nothing may be mounted at " + quoted(place));
    }
  }
  return {};
}

Result<void> check_paths(const Spec& spec) {
  for (auto [field, list] : {std::pair("linux.maskedPaths", &spec.linux_.masked_paths),
                             std::pair("linux.readonlyPaths", &spec.linux_.readonly_paths)}) {
    if (list->size() > kMaskedPathsMax)
      return Error(Code::too_large, std::string(field) + ": more than " + std::to_string(kMaskedPathsMax));
    for (const std::string& path : *list)
      if (!is_absolute(path)) return bad(std::string(field) + ": " + quoted(path) + " is not absolute");
  }
  return {};
}

Result<void> check_propagation(const Spec& spec) {
  static const std::set<std::string> known = {"",       "private", "rprivate",   "slave",      "rslave",
                                              "shared", "rshared", "unbindable", "runbindable"};
  if (!known.count(spec.linux_.rootfs_propagation))
    return bad("linux.rootfsPropagation: unknown " + quoted(spec.linux_.rootfs_propagation));
  return {};
}

Result<void> check_namespaces(const Spec& spec) {
  std::set<std::string> seen;
  for (const Namespace& ns : spec.linux_.namespaces) {
    if (!holds(namespace_names(), ns.type)) return bad("linux.namespaces: unknown type " + quoted(ns.type));
    if (!seen.insert(ns.type).second) return bad("linux.namespaces: " + ns.type + " stands twice");
    if (!ns.path.empty() && !is_absolute(ns.path))
      return bad("linux.namespaces: path " + quoted(ns.path) + " of " + ns.type + " is not absolute");
  }
  return {};
}

Result<void> check_mappings(const Spec& spec) {
  TRY(check_mapping_list(spec.linux_.uid_mappings, "linux.uidMappings"));
  return check_mapping_list(spec.linux_.gid_mappings, "linux.gidMappings");
}

Result<void> check_time_offsets(const Spec& spec) {
  for (const auto& [clock, offset] : spec.linux_.time_offsets) {
    if (clock != "monotonic" && clock != "boottime") return bad("linux.timeOffsets: unknown clock " + quoted(clock));
    if (offset.nanosecs >= kNanosecondsPerSecond)
      return bad("linux.timeOffsets." + clock + ".nanosecs: " + std::to_string(offset.nanosecs) + " is a second or more");
  }
  return {};
}

Result<void> check_devices(const Spec& spec) {
  const std::vector<Device>& list = spec.linux_.devices;
  if (list.size() > kDevicesMax) return Error(Code::too_large, "linux.devices: more than " + std::to_string(kDevicesMax));
  std::map<std::string, const Device*> seen;
  for (size_t i = 0; i < list.size(); ++i) {
    TRY(check_device(list[i], at("linux.devices", i)));
    auto [found, is_new] = seen.emplace(plain_path(list[i].path), &list[i]);
    if (!is_new && !same_node(*found->second, list[i]))
      return bad(at("linux.devices", i) + ": " + quoted(list[i].path) + " is another device already");
  }
  return {};
}

Result<void> check_net_devices(const Spec& spec) {
  std::set<std::string> taken;
  for (const auto& [name, inside] : spec.linux_.net_devices) {
    if (!is_interface_name(name)) return bad("linux.netDevices: " + quoted(name) + " is no interface's name");
    if (!inside.empty() && !is_interface_name(inside))
      return bad("linux.netDevices." + name + ".name: " + quoted(inside) + " is no interface's name");
    std::string becomes = inside.empty() ? name : inside;
    if (!is_name_or_template(becomes)) return bad("linux.netDevices: " + quoted(becomes) + " has a % that is not the only %d");
    if (becomes.find("%d") == becomes.npos && !taken.insert(becomes).second)
      return bad("linux.netDevices: two become " + quoted(becomes));
  }
  return {};
}

Result<void> check_personality(const Spec& spec) {
  if (!spec.linux_.personality) return {};
  const Personality& personality = *spec.linux_.personality;
  if (personality.domain != "LINUX" && personality.domain != "LINUX32")
    return bad("linux.personality.domain: unknown " + quoted(personality.domain));
  if (!personality.flags.empty())
    return unsupported("linux.personality.flags: the specification has none, not " + quoted(personality.flags[0]));
  return {};
}

Result<void> check_memory_policy(const Spec& spec) {
  if (!spec.linux_.memory_policy) return {};
  const MemoryPolicy& policy = *spec.linux_.memory_policy;
  auto mode = kPolicyModes.find(policy.mode);
  if (mode == kPolicyModes.end()) return bad("linux.memoryPolicy.mode: unknown " + quoted(policy.mode));
  if (!is_number_list(policy.nodes))
    return bad("linux.memoryPolicy.nodes: " + quoted(policy.nodes) + " is no list of memory nodes");
  if (mode->second == PolicyNodes::none && !policy.nodes.empty())
    return bad("linux.memoryPolicy.nodes: " + policy.mode + " takes none");
  if (mode->second == PolicyNodes::some && policy.nodes.empty())
    return bad("linux.memoryPolicy.nodes: " + policy.mode + " needs one at least");
  std::set<std::string> given(policy.flags.begin(), policy.flags.end());
  for (const std::string& flag : given)
    if (!holds(memory_policy_flags(), flag)) return bad("linux.memoryPolicy.flags: unknown " + quoted(flag));
  if (given.count("MPOL_F_RELATIVE_NODES") && given.count("MPOL_F_STATIC_NODES"))
    return bad("linux.memoryPolicy.flags: nodes cannot be both relative and static");
  return {};
}

// Intel's cache and bandwidth allocation for servers: not supported on the target machines.
Result<void> check_intel_rdt(const Spec& spec) {
  if (spec.linux_.intel_rdt) return unsupported("linux.intelRdt: resctrl is not supported");
  return {};
}

}  // namespace coracle::oci

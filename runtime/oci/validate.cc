// SPDX-License-Identifier: Apache-2.0
// See validate.h.
#include "runtime/oci/validate.h"

#include <algorithm>
#include <set>

#include "runtime/base/text.h"
#include "runtime/oci/capabilities.h"

namespace coracle::oci {
namespace {

constexpr size_t kMountsMax = 200;  // each may need a descriptor, and one message carries 250
constexpr size_t kMaskedPathsMax = 256;
constexpr size_t kArgumentBytesMax = 6 << 20;  // execve's own limit depends on the stack's; this bounds our plan
constexpr size_t kHostnameMax = 64;
constexpr uint32_t kIdMax = 0x7fffffff;  // CVE-2024-40635: larger ones wrapped around to root elsewhere

Error bad(const std::string& text) { return Error(Code::invalid, text); }

bool has_nul(const std::string& text) { return text.find('\0') != text.npos; }
bool is_absolute(const std::string& path) { return path.starts_with("/") && !has_nul(path); }

Result<void> version(const Spec& spec) {
  if (!spec.version.starts_with("1.")) return Error(Code::unsupported, "ociVersion " + quoted(spec.version));
  return {};
}

Result<void> arguments(const Spec& spec) {
  const Process& process = spec.process;
  if (process.args.empty() || process.args[0].empty()) return bad("process.args is empty");
  size_t bytes = 0;
  for (const auto* list : {&process.args, &process.env}) {
    for (const std::string& item : *list) {
      if (has_nul(item)) return bad("process.args or process.env holds a NUL byte");
      bytes += item.size() + 1;
    }
  }
  if (bytes > kArgumentBytesMax) return Error(Code::too_large, "process.args and process.env are too long");
  for (const std::string& item : process.env)
    if (item.find('=') == item.npos || item[0] == '=')
      return bad("process.env entry " + quoted(item) + " is not NAME=value");
  return {};
}

Result<void> working_directory(const Spec& spec) {
  if (!is_absolute(spec.process.cwd)) return bad("process.cwd " + quoted(spec.process.cwd) + " is not absolute");
  return {};
}

Result<void> user(const Spec& spec) {
  const User& user = spec.process.user;
  if (user.uid > kIdMax) return bad("process.user.uid " + std::to_string(user.uid) + " is out of range");
  if (user.gid > kIdMax) return bad("process.user.gid " + std::to_string(user.gid) + " is out of range");
  for (uint32_t gid : user.additional_gids)
    if (gid > kIdMax) return bad("process.user.additionalGids: " + std::to_string(gid) + " is out of range");
  if (user.umask && *user.umask > 0777) return bad("process.user.umask is out of range");
  return {};
}

Result<void> capabilities(const Spec& spec) {
  if (!spec.process.capabilities) return {};
  const Capabilities& caps = *spec.process.capabilities;
  for (const auto* list : {&caps.bounding, &caps.effective, &caps.inheritable, &caps.permitted, &caps.ambient})
    TRY(capability_set(*list).wrap("process.capabilities"));
  return {};
}

Result<void> rlimits(const Spec& spec) {
  std::set<std::string> seen;
  for (const Rlimit& limit : spec.process.rlimits) {
    if (!seen.insert(limit.type).second) return bad("process.rlimits: " + quoted(limit.type) + " stands twice");
    if (limit.soft > limit.hard)
      return bad("process.rlimits: " + limit.type + ": the soft limit is above the hard one");
  }
  return {};
}

Result<void> oom_score(const Spec& spec) {
  if (spec.process.oom_score_adj && (*spec.process.oom_score_adj < -1000 || *spec.process.oom_score_adj > 1000))
    return bad("process.oomScoreAdj is not between -1000 and 1000");
  return {};
}

Result<void> host_name(const Spec& spec) {
  for (const std::string* name : {&spec.hostname, &spec.domainname})
    if (name->size() > kHostnameMax || has_nul(*name)) return bad("hostname " + quoted(*name) + " is too long");
  return {};
}

// What may be mounted over /proc: itself, and files whose content only informs. CVE-2019-16884, CVE-2025-52881: a
// procfs that somebody else shaped would receive what we write to it.
Result<void> proc_is_genuine(const Spec& spec) {
  static const std::set<std::string> harmless = {
      "/proc/cpuinfo", "/proc/diskstats", "/proc/meminfo",  "/proc/stat",    "/proc/swaps",
      "/proc/uptime",  "/proc/loadavg",   "/proc/slabinfo", "/proc/net/dev", "/proc/sys/kernel/ns_last_pid"};
  for (const Mount& mount : spec.mounts) {
    if (mount.destination == "/proc" || mount.destination == "/proc/") {
      if (mount.type != "proc" && mount.source != "/proc") return bad("mounts: only a procfs may stand at /proc");
      continue;
    }
    if (mount.destination.starts_with("/proc/") && !harmless.count(mount.destination))
      return bad("mounts: nothing may be mounted at " + mount.destination);
  }
  return {};
}

Result<void> mounts(const Spec& spec) {
  if (spec.mounts.size() > kMountsMax) return Error(Code::too_large, "mounts: more than " + std::to_string(kMountsMax));
  for (const Mount& mount : spec.mounts) {
    if (!is_absolute(mount.destination))
      return bad("mounts: destination " + quoted(mount.destination) + " is not absolute");
    if (mount.destination == "/") return bad("mounts: destination \"/\" is the root's place");
    for (std::string_view part : split(mount.destination, '/'))
      if (part == "..") return bad("mounts: destination " + quoted(mount.destination) + " holds \"..\"");
    if (has_nul(mount.source) || has_nul(mount.type))
      return bad("mounts: a NUL byte in the mount of " + mount.destination);
  }
  return {};
}

Result<void> namespaces(const Spec& spec) {
  static const std::set<std::string> known = {"pid", "network", "mount", "ipc", "uts", "user", "cgroup", "time"};
  std::set<std::string> seen;
  for (const Namespace& ns : spec.linux_.namespaces) {
    if (!known.count(ns.type)) return bad("linux.namespaces: unknown type " + quoted(ns.type));
    if (!seen.insert(ns.type).second) return bad("linux.namespaces: " + ns.type + " stands twice");
    if (!ns.path.empty() && !is_absolute(ns.path)) return bad("linux.namespaces: path " + quoted(ns.path));
    if (ns.type == "user" || ns.type == "time") return Error(Code::unsupported, "linux.namespaces: " + ns.type);
    if (ns.type == "mount" && !ns.path.empty())
      return Error(Code::unsupported, "linux.namespaces: joining a mount namespace");
  }
  if (!spec.linux_.uid_mappings.empty() || !spec.linux_.gid_mappings.empty())
    return Error(Code::unsupported, "linux.uidMappings and linux.gidMappings");
  return {};
}

Result<void> devices(const Spec& spec) {
  for (const Device& device : spec.linux_.devices) {
    if (!is_absolute(device.path)) return bad("linux.devices: path " + quoted(device.path) + " is not absolute");
    if (device.type != "c" && device.type != "u" && device.type != "b" && device.type != "p")
      return bad("linux.devices: type " + quoted(device.type) + " of " + device.path);
    if (device.type != "p" && (device.major < 0 || device.minor < 0 || device.major > 0xfff || device.minor > 0xfffff))
      return bad("linux.devices: numbers of " + device.path + " are out of range");
  }
  for (const DeviceRule& rule : spec.linux_.resources.devices) {
    if (rule.type != "a" && rule.type != "c" && rule.type != "b")
      return bad("linux.resources.devices: type " + quoted(rule.type));
    if (rule.access.find_first_not_of("rwm") != rule.access.npos)
      return bad("linux.resources.devices: access " + quoted(rule.access));
  }
  return {};
}

Result<void> paths(const Spec& spec) {
  for (const auto* list : {&spec.linux_.masked_paths, &spec.linux_.readonly_paths}) {
    if (list->size() > kMaskedPathsMax) return Error(Code::too_large, "linux.maskedPaths or linux.readonlyPaths");
    for (const std::string& path : *list)
      if (!is_absolute(path))
        return bad("linux.maskedPaths or linux.readonlyPaths: " + quoted(path) + " is not absolute");
  }
  return {};
}

// CVE-2023-6476, CVE-2024-3154: what is written to the cgroup is one file of it, nothing else.
Result<void> unified(const Spec& spec) {
  for (const auto& [file, value] : spec.linux_.resources.unified) {
    bool is_plain = !file.empty() && file.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_.") == file.npos &&
                    file.find('.') != file.npos && !file.starts_with("cgroup.") && !file.starts_with(".");
    if (!is_plain) return bad("linux.resources.unified: " + quoted(file) + " is no controller's file");
  }
  return {};
}

Result<void> propagation(const Spec& spec) {
  static const std::set<std::string> known = {"", "private", "rprivate", "slave", "rslave", "shared", "rshared"};
  if (!known.count(spec.linux_.rootfs_propagation))
    return bad("linux.rootfsPropagation " + quoted(spec.linux_.rootfs_propagation));
  return {};
}

}  // namespace

const std::vector<Check>& checks() {
  static const std::vector<Check> all = {
      {"version", version},
      {"arguments", arguments},
      {"working directory", working_directory},
      {"user", user},
      {"capabilities", capabilities},
      {"rlimits", rlimits},
      {"oom score", oom_score},
      {"hostname", host_name},
      {"mounts", mounts},
      {"procfs", proc_is_genuine},
      {"namespaces", namespaces},
      {"devices", devices},
      {"paths", paths},
      {"unified", unified},
      {"propagation", propagation},
  };
  return all;
}

Result<void> validate(const Spec& spec) {
  for (const Check& check : checks()) TRY(check.run(spec));
  return {};
}

Result<void> check_sysctls(const std::map<std::string, std::string>& sysctls, bool has_network, bool has_ipc,
                           bool has_uts) {
  static const std::set<std::string> ipc = {"kernel.msgmax", "kernel.msgmnb",         "kernel.msgmni",
                                            "kernel.sem",    "kernel.shmall",         "kernel.shmmax",
                                            "kernel.shmmni", "kernel.shm_rmid_forced"};
  for (const auto& [given, value] : sysctls) {
    std::string name = given;
    std::replace(name.begin(), name.end(), '/', '.');
    // CVE-2022-0811: one name, one value, nothing that could be read as more.
    if (name.empty() ||
        name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") != name.npos ||
        name.find("..") != name.npos)
      return bad("sysctl " + quoted(given) + " is malformed");
    if (value.find_first_of(std::string_view("\n\0", 2)) != value.npos)
      return bad("sysctl " + name + ": malformed value");
    bool is_ipc = ipc.count(name) || name.starts_with("fs.mqueue.");
    bool is_uts = name == "kernel.domainname" || name == "kernel.hostname";
    bool is_net = name.starts_with("net.");
    if (!is_ipc && !is_uts && !is_net) return bad("sysctl " + name + " is not separate for a container");
    if ((is_ipc && !has_ipc) || (is_uts && !has_uts) || (is_net && !has_network))
      return bad("sysctl " + name + " would change the host: the namespace is shared with it");
  }
  return {};
}

std::string sysctl_path(const std::string& name) {
  std::string out = name;
  if (out.find('/') == out.npos) std::replace(out.begin(), out.end(), '.', '/');
  return out;
}

}  // namespace coracle::oci

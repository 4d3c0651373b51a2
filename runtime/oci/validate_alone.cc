// SPDX-License-Identifier: Apache-2.0
// Additional checks for a config.json outside of a sandbox: a namespace that is not listed is the host's, and changes to it are
// rejected. Source: runtime-spec config-linux.md "Namespaces"; sysctl(8).
#include <algorithm>
#include <set>

#include "runtime/oci/checks.h"
#include "runtime/oci/validate.h"

namespace coracle::oci {
namespace {

const Namespace* find_namespace(const Spec& spec, std::string_view type) {
  for (const Namespace& ns : spec.linux_.namespaces)
    if (ns.type == type) return &ns;
  return nullptr;
}

Error needs(const char* field, const char* type) {
  return bad(std::string(field) + " needs a " + type + " namespace in linux.namespaces: it would change the host");
}

// The name with "." as the only separator: a component may contain the other character.
std::string dotted(const std::string& name) {
  std::string out = sysctl_path(name);
  for (char& c : out) c = c == '/' ? '.' : c == '.' ? '/' : c;
  return out;
}

}  // namespace

Result<void> check_root(const Spec& spec) {
  if (spec.root.path.empty()) return bad("root.path is empty");
  return {};
}

Result<void> check_own_namespaces(const Spec& spec) {
  if (!spec.hostname.empty() && !find_namespace(spec, "uts")) return needs("hostname", "uts");
  if (!spec.domainname.empty() && !find_namespace(spec, "uts")) return needs("domainname", "uts");
  if (!spec.linux_.net_devices.empty() && !find_namespace(spec, "network")) return needs("linux.netDevices", "network");
  const Namespace* time = find_namespace(spec, "time");
  if (!spec.linux_.time_offsets.empty() && !time) return needs("linux.timeOffsets", "time");
  if (!spec.linux_.time_offsets.empty() && !time->path.empty())
    return bad("linux.timeOffsets: " + quoted(time->path) + " has its offsets already");
  if (find_namespace(spec, "mount")) return {};
  if (!spec.linux_.masked_paths.empty()) return needs("linux.maskedPaths", "mount");
  if (!spec.linux_.readonly_paths.empty()) return needs("linux.readonlyPaths", "mount");
  return {};
}

Result<void> check_own_user_namespace(const Spec& spec) {
  const Namespace* user = find_namespace(spec, "user");
  bool has_uids = !spec.linux_.uid_mappings.empty(), has_gids = !spec.linux_.gid_mappings.empty();
  if (!user && has_uids) return bad("linux.uidMappings without a user namespace in linux.namespaces");
  if (!user && has_gids) return bad("linux.gidMappings without a user namespace in linux.namespaces");
  // A namespace that is joined has its maps already; engines repeat them.
  if (user && user->path.empty() && !has_uids) return bad("linux.uidMappings: a new user namespace needs one");
  if (user && user->path.empty() && !has_gids) return bad("linux.gidMappings: a new user namespace needs one");
  for (const Mount& mount : spec.mounts) {
    bool is_mapped = std::any_of(mount.options.begin(), mount.options.end(),
                                 [](const std::string& option) { return option == "idmap" || option == "ridmap"; });
    if (is_mapped && mount.uid_mappings.empty() && !user)
      return bad("mounts: " + quoted(mount.destination) + ": idmap needs uidMappings, or a user namespace to take them from");
  }
  return {};
}

Result<void> check_own_sysctls(const Spec& spec) {
  OwnNamespaces own;
  own.network = find_namespace(spec, "network");
  own.ipc = find_namespace(spec, "ipc");
  own.uts = find_namespace(spec, "uts");
  own.user = find_namespace(spec, "user");
  TRY(check_sysctls(spec.linux_.sysctl, own));
  for (const auto& [given, value] : spec.linux_.sysctl) {
    const std::string name = dotted(given);
    const std::string& own_name = name == "kernel.domainname" ? spec.domainname : spec.hostname;
    const bool is_name = name == "kernel.hostname" || name == "kernel.domainname";
    if (is_name && !own_name.empty() && own_name != value)
      return bad("linux.sysctl: " + quoted(given) + ": the configuration has a " + name.substr(name.find('.') + 1) + " already");
  }
  return {};
}

Result<void> check_sysctls(const std::map<std::string, std::string>& sysctls, const OwnNamespaces& own) {
  static const std::set<std::string> ipc = {"kernel.msgmax", "kernel.msgmnb", "kernel.msgmni", "kernel.sem",
                                            "kernel.shmall", "kernel.shmmax", "kernel.shmmni", "kernel.shm_rmid_forced"};
  for (const auto& [given, value] : sysctls) {
    std::string name = dotted(given), path = sysctl_path(given);
    // CVE-2022-0811: exactly one name and one value, without characters of other syntaxes.
    if (name.empty() || climbs(path) || path.find("//") != path.npos || path.starts_with("/") || path.ends_with("/") ||
        name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789./_-") != name.npos)
      return bad("linux.sysctl: " + quoted(given) + " is malformed");
    if (value.find_first_of(std::string_view("\n\0", 2)) != value.npos)
      return bad("linux.sysctl: " + quoted(given) + ": malformed value");
    bool is_ipc = ipc.count(name) || name.starts_with("fs.mqueue.");
    bool is_uts = name == "kernel.domainname" || name == "kernel.hostname";
    bool is_net = name.starts_with("net."), is_user = name.starts_with("user.");
    if (!is_ipc && !is_uts && !is_net && !is_user)
      return bad("linux.sysctl: " + quoted(given) + " is not separate for a container");
    if ((is_ipc && !own.ipc) || (is_uts && !own.uts) || (is_net && !own.network) || (is_user && !own.user))
      return bad("linux.sysctl: " + quoted(given) + " would change the host: the namespace is shared with it");
  }
  return {};
}

Result<void> check_sysctls(const std::map<std::string, std::string>& sysctls, bool has_network, bool has_ipc, bool has_uts) {
  return check_sysctls(sysctls, {.network = has_network, .ipc = has_ipc, .uts = has_uts, .user = false});
}

std::string sysctl_path(const std::string& name) {
  std::string out = name;
  size_t first = out.find_first_of("./");
  if (first == out.npos || out[first] == '/') return out;
  for (char& c : out) c = c == '.' ? '/' : c == '/' ? '.' : c;
  return out;
}

}  // namespace coracle::oci

// SPDX-License-Identifier: Apache-2.0
// Planning, pure: turns a specification and the properties of its sandbox into the steps of the child. Opens nothing; prepare.h
// opens the sources and writes the steps into the flat plan. Source: runtime-spec config.md "Mounts", config-linux.md; mount(8)
// for the names of options.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"
#include "runtime/cgroup/v1.h"
#include "runtime/launch/flat_plan.h"
#include "runtime/oci/spec.h"
#include "runtime/pause/protocol.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/mount.h"

namespace coracle::runtime {

// What a plan depends on beside the specification: the sandbox, and the launcher.
struct SandboxInfo {
  // A pod's containers start in coracle-pause's file system tree, which contains /shm, /null and /empty; others in the host's.
  bool is_pod = true;
  bool has_network = true, has_ipc = true, has_uts = true;  // namespaces of the sandbox's own; false: the host's
  bool host_pid = false, shared_pid = false;
  bool has_selinux = false;                 // otherwise linux.mountLabel has no effect
  int launcher = launch::kLauncherVersion;  // its version; an old one gets no own_directory steps
  // Hierarchies of cgroup v1 in which the container has a cgroup of its own; a mount of type cgroup shows them. Others are never
  // shown: there it would be in the host's root cgroup, which has the host's release_agent (CVE-2022-0492).
  std::vector<cgroup::V1Hierarchy> v1;
  std::string cgroup;     // its path in each of them
  std::string v2_cgroup;  // its directory in cgroup v2
};
struct LauncherInfo {  // properties of the launching process
  uint64_t capabilities = ~uint64_t(0);
  int oom_score_adj = 0;       // 0 for who may lower it
  bool is_host_root = true;    // false: the capabilities apply in a user namespace only
  bool may_set_groups = true;  // /proc/self/setgroups
};
constexpr int kCapSysResource = 24;

// The host ids of the container's ids. Without a user namespace they are equal.
struct IdMaps {
  std::vector<oci::IdMapping> uids, gids;
  static std::optional<uint32_t> host_id(const std::vector<oci::IdMapping>& maps, uint32_t id);
  uint32_t uid(uint32_t id) const { return uids.empty() ? id : host_id(uids, id).value_or(0); }  // 0: not mapped
  uint32_t gid(uint32_t id) const { return gids.empty() ? id : host_id(gids, id).value_or(0); }
};

// How a container gets each namespace. A namespace that is not listed is the launcher's: the pod's or the host's.
struct NamespacePlan {
  uint64_t fresh = 0;                         // CLONE_NEW*: net, ipc, uts, pid, mount; new ones for the container
  std::map<std::string, std::string> joined;  // type → path: net, ipc, uts, pid, mount, cgroup, time
  bool new_user = false, new_cgroup = false, new_time = false;
  std::string user_path;      // the user namespace to join
  bool in_host_tree = false;  // no mount namespace: its mounts are made in the host's tree, and it is confined by chroot
};
// Errors: unsupported, with the namespace.
Result<NamespacePlan> plan_namespaces(const oci::Spec& spec, const SandboxInfo& sandbox);

// The options of one mount, sorted by their meaning.
struct MountOptions {
  bool is_bind = false, is_recursive = false;
  uint64_t set = 0, clear = 0;                      // MOUNT_ATTR_* of the mount itself
  uint64_t set_recursive = 0, clear_recursive = 0;  // of the mounts beneath it too ("rro")
  uint64_t propagation = 0;                         // MS_SHARED, ... possibly with MS_REC
  bool copies_up = false;                           // "tmpcopyup"
  bool is_idmapped = false, is_recursively_idmapped = false;
  bool copies_link = false, takes_link = false, covers_link = false;  // "copy-symlink", "src-nofollow", "dest-nofollow"
  std::vector<sys::FsOption> data;                                    // options of the file system
};
// Errors: unsupported, with the option; invalid if two contradict each other.
Result<MountOptions> parse_mount_options(const oci::Mount& mount);

struct MountDraft {
  launch::MountKind kind = launch::MountKind::file_system;
  uint32_t flags = 0;
  std::string destination, type;
  std::string source;                   // attach, outer: host path; inner: path in the container,
  std::shared_ptr<const Fd> source_fd;  // or this descriptor
  MountOptions options;
  std::vector<oci::IdMapping> uid_mappings, gid_mappings;  // for is_idmapped
};
Result<std::vector<MountDraft>> plan_mounts(const oci::Spec& spec, const SandboxInfo& sandbox, const IdMaps& ids);

// The host's user to whom the container's cgroup is delegated, for a container that mounts its cgroups writable in its own cgroup
// namespace: its process's. None otherwise, for host root, and for a user who is not mapped. Source: runtime-spec config-linux.md
// "Cgroup ownership".
std::optional<uint32_t> plan_cgroup_owner(const oci::Spec& spec, const NamespacePlan& namespaces, const IdMaps& ids);

// The default devices, then those of the spec, at normalised paths and with host ids as owners. In a user namespace the spec's
// devices keep their owners on the host: the container's root is not the owner of the host's disks.
std::vector<oci::Device> plan_devices(const oci::Spec& spec, const IdMaps& ids);
// The spec's rules in their order, then those for the default devices. Listing a device in linux.devices only creates the node;
// linux.resources.devices grants the access. Source: runtime-spec config-linux.md "Allowed Device list".
std::vector<sys::DeviceMatch> plan_device_rules(const oci::Spec& spec);
// {target, path}. Also a link for each controller of a cgroup v1 hierarchy with several ("cpu" → "cpu,cpuacct").
std::vector<std::pair<std::string, std::string>> plan_links(const oci::Spec& spec, const SandboxInfo& sandbox);

// Of variables that occur several times, only the last is kept.
std::vector<std::string> plan_env(const std::vector<std::string>& env);
// The candidate paths for execve: the program itself if it contains a slash, otherwise one for each entry of PATH in `env`.
std::vector<std::string> plan_programs(const std::string& program, const std::vector<std::string>& env);

struct CapabilitySets {
  uint64_t bounding = 0, effective = 0, permitted = 0, inheritable = 0, ambient = 0;
};
// Capabilities that `own` lacks are omitted, because a process can only pass on those it has.
Result<CapabilitySets> plan_capabilities(const oci::Capabilities& wanted, const LauncherInfo& own);
// What is wanted and not in these sets, to warn of it: "permitted CAP_KILL, effective CAP_CHOWN". "" if all is granted. Source:
// runtime-spec config.md "Linux Process": a runtime should not fail for it.
std::string capabilities_not_granted(const oci::Capabilities& wanted, const CapabilitySets& granted);
// The same for the ambient set, with a name for each. They need to be permitted and inheritable.
std::vector<std::string> ambient_not_granted(const oci::Capabilities& wanted, const CapabilitySets& granted);
// A value below our own needs CAP_SYS_RESOURCE; without it, the result is at least our own.
bool may_lower_oom_score(const LauncherInfo& own);
int plan_oom_score(int wanted, const LauncherInfo& own);

// These convert names to the numbers of the kernel's interfaces. Errors: invalid, unsupported, with the field.
Result<std::string> plan_scheduler(const oci::Scheduler& scheduler);  // a sched_attr. Source: sched_setattr(2)
Result<int32_t> plan_io_priority(const oci::IoPriority& priority);    // Source: ioprio_set(2)
Result<int64_t> plan_personality(const oci::Personality& personality);
Result<std::vector<uint64_t>> plan_bits(const std::string& list, const char* field);  // "0-3,7"
Result<int32_t> plan_memory_mode(const oci::MemoryPolicy& policy);                    // Source: set_mempolicy(2)

}  // namespace coracle::runtime

// SPDX-License-Identifier: Apache-2.0
// Planning, pure: a specification and what is known of its sandbox become the steps that the child will take. Nothing
// is opened here; prepare.h turns sources into descriptors and the steps into the flat plan. Source: runtime-spec
// config.md "Mounts", config-linux.md; mount(8) for the options' names.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"
#include "runtime/launch/flat_plan.h"
#include "runtime/oci/spec.h"
#include "runtime/pause/protocol.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/mount.h"

namespace coracle::runtime {

// What a plan depends on beside the specification: where the container is born, and who launches it.
struct SandboxFacts {
  // A pod's containers are born in coracle-pause's own tree, which holds /shm, /null and /empty; others in the host's.
  bool is_pod = true;
  bool has_network = true, has_ipc = true, has_uts = true;  // namespaces of its own; false: the host's
  bool host_pid = false, shared_pid = false;
  int launcher = launch::kLauncherVersion;  // what it can do: own directories that it does not know are left out
};
struct OwnFacts {  // of the process that launches
  uint64_t capabilities = ~uint64_t(0);
  int oom_score_adj = 0;
  bool is_host_root = true;    // else the capabilities hold in a user namespace only
  bool may_set_groups = true;  // /proc/self/setgroups
};
constexpr int kCapSysResource = 24;

// The container's ids as the host has them. Without a user namespace of its own they are the same.
struct IdMaps {
  std::vector<oci::IdMapping> uids, gids;
  static std::optional<uint32_t> host_id(const std::vector<oci::IdMapping>& maps, uint32_t id);
  uint32_t uid(uint32_t id) const { return uids.empty() ? id : host_id(uids, id).value_or(0); }  // 0: mapped to nobody's
  uint32_t gid(uint32_t id) const { return gids.empty() ? id : host_id(gids, id).value_or(0); }
};

// Which namespaces a container gets how. Those that are not named are the launcher's: a pod's, or the host's.
struct NamespacePlan {
  uint64_t fresh = 0;                         // CLONE_NEW*: net, ipc, uts, pid, mount; of the container's own
  std::map<std::string, std::string> joined;  // type → path: net, ipc, uts, pid, mount, cgroup, time
  bool new_user = false, new_cgroup = false, new_time = false;
  std::string user_path;  // of the user namespace to join
  bool in_host_tree =
      false;  // no mount namespace: what it mounts stands in the host's tree, and it is kept in its root by chroot
};
// Errors: unsupported, with the namespace.
Result<NamespacePlan> plan_namespaces(const oci::Spec& spec, const SandboxFacts& sandbox);

// Options of one mount, sorted by what they mean.
struct MountOptions {
  bool is_bind = false, is_recursive = false;
  uint64_t set = 0, clear = 0;                      // MOUNT_ATTR_* of the mount itself
  uint64_t set_recursive = 0, clear_recursive = 0;  // of those beneath it too ("rro")
  uint64_t propagation = 0;                         // MS_SHARED, ... possibly with MS_REC
  bool copies_up = false;                           // "tmpcopyup"
  bool is_idmapped = false, is_recursively_idmapped = false;
  std::vector<sys::FsOption> data;  // the file system's own
};
// Errors: unsupported, with the option.
Result<MountOptions> parse_mount_options(const oci::Mount& mount);

struct MountDraft {
  launch::MountKind kind = launch::MountKind::file_system;
  uint32_t flags = 0;
  std::string destination, type;
  std::string source;                   // attach: host path; inner: path in the container,
  std::shared_ptr<const Fd> source_fd;  // or this
  MountOptions options;
  std::vector<oci::IdMapping> uid_mappings, gid_mappings;  // is_idmapped
};
Result<std::vector<MountDraft>> plan_mounts(const oci::Spec& spec, const SandboxFacts& sandbox, const IdMaps& ids);

// Every container's devices, then those of the spec, at plain paths; owners as the host has them. In a user namespace those of
// the spec stay whose they are for the host: its root is not the owner of the host's disks.
std::vector<oci::Device> plan_devices(const oci::Spec& spec, const IdMaps& ids);
// Every container's devices and what the spec's rules name. A device that is only made may not be used: linux.devices says what
// is there, linux.resources.devices who may. Source: runtime-spec config-linux.md "Allowed Device list".
std::vector<sys::DeviceMatch> plan_device_rules(const oci::Spec& spec);
// {target, path}
std::vector<std::pair<std::string, std::string>> plan_links(const oci::Spec& spec);

// Of variables that stand more than once, the last.
std::vector<std::string> plan_env(const std::vector<std::string>& env);
// Where execve will look: the program itself when it holds a slash, else PATH of `env` entry by entry.
std::vector<std::string> plan_programs(const std::string& program, const std::vector<std::string>& env);

struct CapabilitySets {
  uint64_t bounding = 0, effective = 0, permitted = 0, inheritable = 0, ambient = 0;
};
// What `own` lacks is left out: nobody can give what it has not.
Result<CapabilitySets> plan_capabilities(const oci::Capabilities& wanted, const OwnFacts& own);
// Lower than our own needs CAP_SYS_RESOURCE; without it our own is as low as it gets.
int plan_oom_score(int wanted, const OwnFacts& own);

// The words that the kernel's interfaces have numbers for. Errors: invalid, unsupported, with the field.
Result<std::string> plan_scheduler(const oci::Scheduler& scheduler);  // a sched_attr. Source: sched_setattr(2)
Result<int32_t> plan_io_priority(const oci::IoPriority& priority);    // Source: ioprio_set(2)
Result<int64_t> plan_personality(const oci::Personality& personality);
Result<std::vector<uint64_t>> plan_bits(const std::string& list, const char* field);  // "0-3,7"
Result<int32_t> plan_memory_mode(const oci::MemoryPolicy& policy);                    // Source: set_mempolicy(2)

}  // namespace coracle::runtime

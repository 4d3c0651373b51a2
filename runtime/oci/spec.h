// SPDX-License-Identifier: Apache-2.0
// config.json as structs: a container in the terms of the OCI runtime specification. The node agent fills them, or coracle-oci
// reads them from a bundle; the same code runs both. Source: opencontainers/runtime-spec v1.2 and v1.3, config.md and
// config-linux.md.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/fd.h"
#include "runtime/base/json.h"

namespace coracle::oci {

struct IdMapping {
  uint32_t container_id = 0, host_id = 0, size = 0;
  bool operator==(const IdMapping&) const = default;
};

struct Mount {
  std::string destination;           // absolute, inside the container
  std::string type;                  // "bind", "tmpfs", "proc", ...; empty with source_fd
  std::string source;                // host path, or the file system's source; with source_fd only for messages
  std::vector<std::string> options;  // "ro", "rbind", "nosuid", "mode=755", "rslave", ...
  // The object to bind, already opened by the caller without races (subPath, volumes); overrides `source`.
  std::shared_ptr<const Fd> source_fd;
  bool of_root = false;  // mounts the root's own directory on itself (made if absent): stays writable; nothing else counts
  // For "idmap" or "ridmap"; if empty, the container's maps. container_id is the owner on the disk, host_id the owner on the
  // host.
  std::vector<IdMapping> uid_mappings, gid_mappings;
};

struct User {
  uint32_t uid = 0, gid = 0;
  std::optional<uint32_t> umask;
  std::vector<uint32_t> additional_gids;
  std::string home;  // from the image's /etc/passwd; "": unknown. Not in config.json, where HOME is in env
};

struct Capabilities {  // names as CAP_NET_RAW
  std::vector<std::string> bounding, effective, inheritable, permitted, ambient;
};

struct Rlimit {
  std::string type;  // RLIMIT_NOFILE
  uint64_t soft = 0, hard = 0;
};

struct Scheduler {     // Source: sched_setattr(2)
  std::string policy;  // "SCHED_OTHER", "SCHED_FIFO", ...
  std::optional<int32_t> nice, priority;
  std::vector<std::string> flags;  // "SCHED_FLAG_RESET_ON_FORK", ...
  std::optional<uint64_t> runtime_ns, deadline_ns, period_ns;
};

struct IoPriority {      // Source: ioprio_set(2)
  std::string io_class;  // "IOPRIO_CLASS_BE", ...
  int32_t priority = 0;  // 0 to 7
};

struct CpuAffinity {       // for exec: lists of processors in the format of cpuset(7)
  std::string initial;     // until the process is in its cgroup
  std::string final_cpus;  // "final": after that
};

struct Process {
  bool terminal = false;
  uint16_t console_width = 0, console_height = 0;  // characters; 0: default
  User user;
  std::vector<std::string> args;
  std::vector<std::string> env;  // NAME=value
  std::string cwd = "/";
  std::optional<Capabilities> capabilities;
  std::vector<Rlimit> rlimits;
  bool no_new_privileges = false;
  std::string apparmor_profile, selinux_label;
  std::optional<int> oom_score_adj;
  std::optional<Scheduler> scheduler;
  std::optional<IoPriority> io_priority;
  std::optional<CpuAffinity> exec_cpu_affinity;
};

struct Root {
  std::string path;  // unused if an image provides the root file system
  bool readonly = false;
};

struct Namespace {
  std::string type;  // "pid", "network", "mount", "ipc", "uts", "user", "cgroup", "time"
  std::string path;  // "": a new one
};

struct Device {
  std::string path, type;  // "c", "b", "p"
  int64_t major = 0, minor = 0;
  std::optional<uint32_t> file_mode, uid, gid;
};

struct DeviceRule {
  bool allow = false;
  std::string type = "a";               // "a", "c", "b"
  std::optional<int64_t> major, minor;  // absent: all
  std::string access = "rwm";
};

struct BlockWeight {
  int64_t major = 0, minor = 0;
  std::optional<uint16_t> weight, leaf_weight;
};
struct BlockThrottle {
  int64_t major = 0, minor = 0;
  uint64_t rate = 0;  // bytes or operations per second
};
struct BlockIo {
  std::optional<uint16_t> weight, leaf_weight;  // 10 to 1000
  std::vector<BlockWeight> weight_devices;
  std::vector<BlockThrottle> read_bps, write_bps, read_iops, write_iops;
};
struct HugepageLimit {
  std::string page_size;  // "2MB"
  uint64_t limit_bytes = 0;
};
struct RdmaLimit {
  std::optional<uint32_t> hca_handles, hca_objects;
};

struct Resources {  // in the terms of cgroup v1, as in the specification; cgroup/ converts them
  std::vector<DeviceRule> devices;
  std::optional<int64_t> memory_limit_bytes, memory_reservation_bytes, memory_swap_bytes;  // -1: unlimited
  std::optional<int64_t> memory_kernel_bytes, memory_kernel_tcp_bytes;
  std::optional<uint64_t> memory_swappiness;
  std::optional<bool> memory_disable_oom_killer, memory_use_hierarchy, memory_check_before_update;
  std::optional<uint64_t> cpu_shares, cpu_period_us, cpu_burst_us;  // v1 shares, converted
  std::optional<int64_t> cpu_quota_us, cpu_idle, cpu_realtime_runtime_us;
  std::optional<uint64_t> cpu_realtime_period_us;
  std::string cpuset_cpus, cpuset_mems;
  std::optional<int64_t> pids_limit;
  BlockIo block_io;
  std::vector<HugepageLimit> hugepage_limits;
  std::map<std::string, RdmaLimit> rdma;               // device → limit
  std::optional<uint32_t> network_class_id;            // cgroup v1 only
  std::map<std::string, uint32_t> network_priorities;  // cgroup v1 only: interface → priority
  std::map<std::string, std::string> unified;          // cgroup v2 file → value
};

struct Hook {
  std::string path;
  std::vector<std::string> args;
  std::optional<std::vector<std::string>> env;  // absent: the runtime's environment; for startContainer the process's
  std::optional<int> timeout_seconds;
};

struct Hooks {
  std::vector<Hook> prestart, create_runtime, create_container, start_container, poststart, poststop;
};
struct HookKind {
  const char* name;  // in config.json
  std::vector<Hook> Hooks::*list;
};
inline constexpr HookKind kHookKinds[] = {  // in the order of execution
    {"prestart", &Hooks::prestart},
    {"createRuntime", &Hooks::create_runtime},
    {"createContainer", &Hooks::create_container},
    {"startContainer", &Hooks::start_container},
    {"poststart", &Hooks::poststart},
    {"poststop", &Hooks::poststop}};

struct TimeOffset {
  int64_t secs = 0;
  uint32_t nanosecs = 0;
};
struct Personality {
  std::string domain;  // "LINUX", "LINUX32"
  std::vector<std::string> flags;
};
struct IntelRdt {
  std::string clos_id, l3_cache_schema, mem_bw_schema;
  std::vector<std::string> schemata;
  bool enable_cmt = false, enable_mbm = false, enable_monitoring = false;
};
struct MemoryPolicy {  // Source: set_mempolicy(2)
  std::string mode;    // "MPOL_BIND", ...
  std::string nodes;   // "0-3,7"
  std::vector<std::string> flags;
};

struct Linux {
  std::vector<Namespace> namespaces;
  std::vector<IdMapping> uid_mappings, gid_mappings;
  std::vector<Device> devices;
  std::string cgroups_path;
  Resources resources;
  std::string rootfs_propagation;
  std::optional<json::value> seccomp;  // the specification's object; absent: unconfined
  std::map<std::string, std::string> sysctl;
  std::vector<std::string> masked_paths, readonly_paths;
  std::string mount_label;
  std::map<std::string, std::string> net_devices;  // name on the host → name in the container
  std::map<std::string, TimeOffset> time_offsets;  // "monotonic", "boottime"
  std::optional<Personality> personality;
  std::optional<IntelRdt> intel_rdt;
  std::optional<MemoryPolicy> memory_policy;
};

struct Spec {
  std::string version = "1.2.0";
  bool has_process = true;  // false: cannot be started; config.json needs a process only for start
  Process process;
  Root root;
  std::string hostname, domainname;
  std::vector<Mount> mounts;
  Hooks hooks;
  Linux linux_;
  std::map<std::string, std::string> annotations;
};

}  // namespace coracle::oci

// SPDX-License-Identifier: Apache-2.0
// config.json as structs: what a container is, in the OCI runtime specification's own terms. Filled by the node agent
// in process, or read from a bundle by coracle-oci; one code path carries both out. Source: opencontainers/runtime-spec
// v1.2, config.md and config-linux.md.
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

struct Mount {
  std::string destination;           // absolute, inside the container
  std::string type;                  // "bind", "tmpfs", "proc", ...; empty with source_fd
  std::string source;                // host path, or the file system's source
  std::vector<std::string> options;  // "ro", "rbind", "nosuid", "mode=755", "rslave", ...
  // What to bind, already resolved by the caller beyond any race (subPath, volumes); wins over `source`.
  std::shared_ptr<const Fd> source_fd;
};

struct User {
  uint32_t uid = 0, gid = 0;
  std::optional<uint32_t> umask;
  std::vector<uint32_t> additional_gids;
  std::string home;  // by the image's passwd; "": unknown. Not of config.json, where HOME is one of the variables
};

struct Capabilities {  // names as CAP_NET_RAW
  std::vector<std::string> bounding, effective, inheritable, permitted, ambient;
};

struct Rlimit {
  std::string type;  // RLIMIT_NOFILE
  uint64_t soft = 0, hard = 0;
};

struct Process {
  bool terminal = false;
  uint16_t console_width = 0, console_height = 0;  // cells; 0 = default
  User user;
  std::vector<std::string> args;
  std::vector<std::string> env;  // NAME=value
  std::string cwd = "/";
  std::optional<Capabilities> capabilities;
  std::vector<Rlimit> rlimits;
  bool no_new_privileges = false;
  std::string apparmor_profile, selinux_label;
  std::optional<int> oom_score_adj;
};

struct Root {
  std::string path;  // unused where an image gives the rootfs
  bool readonly = false;
};

struct Namespace {
  std::string type;  // "pid", "network", "mount", "ipc", "uts", "user", "cgroup", "time"
  std::string path;  // "" = a new one
};

struct IdMapping {
  uint32_t container_id = 0, host_id = 0, size = 0;
};

struct Device {
  std::string path, type;  // "c", "b", "p"
  int64_t major = 0, minor = 0;
  std::optional<uint32_t> file_mode, uid, gid;
};

struct DeviceRule {
  bool allow = false;
  std::string type = "a";               // "a", "c", "b"
  std::optional<int64_t> major, minor;  // absent = all
  std::string access = "rwm";
};

struct Resources {
  std::vector<DeviceRule> devices;
  std::optional<int64_t> memory_limit_bytes, memory_reservation_bytes, memory_swap_bytes;  // -1 = unlimited
  std::optional<uint64_t> cpu_shares, cpu_period_us, cpu_burst_us;                         // v1 shares, converted
  std::optional<int64_t> cpu_quota_us, cpu_idle;
  std::string cpuset_cpus, cpuset_mems;
  std::optional<int64_t> pids_limit;
  std::map<std::string, std::string> unified;  // cgroup v2 file → value
};

struct Hook {
  std::string path;
  std::vector<std::string> args, env;
  std::optional<int> timeout_seconds;
};

struct Hooks {
  std::vector<Hook> prestart, create_runtime, create_container, start_container, poststart, poststop;
};

struct Linux {
  std::vector<Namespace> namespaces;
  std::vector<IdMapping> uid_mappings, gid_mappings;
  std::vector<Device> devices;
  std::string cgroups_path;
  Resources resources;
  std::string rootfs_propagation;
  std::optional<json::value> seccomp;  // the specification's object; absent = unconfined
  std::map<std::string, std::string> sysctl;
  std::vector<std::string> masked_paths, readonly_paths;
  std::string mount_label;
};

struct Spec {
  std::string version = "1.2.0";
  Process process;
  Root root;
  std::string hostname, domainname;
  std::vector<Mount> mounts;
  Hooks hooks;
  Linux linux_;
  std::map<std::string, std::string> annotations;
};

}  // namespace coracle::oci

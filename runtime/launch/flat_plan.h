// SPDX-License-Identifier: Apache-2.0
// The flat plan: everything that a process of a container is made of, as the child between clone3 and exec walks it. It
// lies in a memfd: one Plan at its start, everything else found by offset from there; only the child maps it. Written by
// container/prepare.cc, carried out by child.cc. Plain structs and fixed arrays, because the child has no C library.
// coracle-pause, and the child in it, live on while the daemon is upgraded: layouts only grow at their ends.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace coracle::launch {

constexpr uint32_t kPlanVersion = 1;
constexpr uint32_t kPlanMagic = 0x434f5231;  // "COR1"
constexpr uint32_t kNoString = 0;            // offset 0 is the Plan itself, so no string is there

// Where the descriptors of a launch stand; those that the plan names count on from kFdMore.
enum LaunchFds { kFdPlan, kFdCgroup, kFdStdin, kFdStdout, kFdStderr, kFdLogDirectory, kFdMore };
// A descriptor that a launch does not need stands as the plan's, so that the places stay the same.
constexpr size_t kFdsMax = 250;

struct Range {  // `count` elements from `offset`
  uint32_t offset, count;
};

enum class MountKind : uint32_t { attach, file_system, pod_shm };
enum MountFlags : uint32_t {
  kMountOnFile = 1 << 0,   // what is mounted is no directory: make a file where there is nothing
  kMountNoLinks = 1 << 1,  // no link may lie on the way to the destination
  kMountProc = 1 << 2,     // this is the container's own procfs: later steps work through it
};

struct MountStep {
  MountKind kind;
  uint32_t flags;
  uint32_t destination;  // string
  int32_t fd;            // attach: index into the request's descriptors
  uint32_t type;         // file_system: string
  Range options;         // pairs of strings (uint32_t offsets): key, value (kNoString = a flag)
  uint32_t unused;
  uint64_t attributes;   // MOUNT_ATTR_* of a new mount
  uint64_t propagation;  // MS_SLAVE, ...; 0 = private
};

struct DeviceStep {
  uint32_t path;
  uint32_t mode;  // with S_IFCHR, ...
  uint32_t uid, gid, major, minor;
};

struct LinkStep {
  uint32_t target, path;
};

struct SysctlStep {
  uint32_t path, value;  // "net/ipv4/ip_forward"
};

struct RlimitStep {
  uint32_t resource, unused;
  uint64_t soft, hard;
};

struct JoinStep {
  int32_t fd;
  uint32_t type;  // CLONE_NEW*
};

enum PlanFlags : uint32_t {
  kPlanTerminal = 1 << 0,
  kPlanNoNewPrivileges = 1 << 1,
  kPlanReadonlyRoot = 1 << 2,
  kPlanHold = 1 << 3,
  kPlanMakeDirectory = 1 << 4,  // make the working directory where there is none
  kPlanSetUmask = 1 << 5,
  kPlanSetOomScore = 1 << 6,
  kPlanExec = 1 << 7,           // enter a container instead of making one
  kPlanConsole = 1 << 8,        // bind the terminal to /dev/console
  kPlanCapabilities = 1 << 9,   // absent: capabilities stay as they are
  kPlanDieWithPause = 1 << 10,  // its pid namespace does not do it
};

struct Plan {
  uint32_t magic, version, size, flags;
  int32_t root_fd;
  uint32_t unshare;                    // CLONE_NEW*
  uint64_t root_propagation;           // MS_*, 0 = private
  Range joins;                         // JoinStep
  Range mounts;                        // MountStep
  Range devices;                       // DeviceStep
  Range links;                         // LinkStep
  Range sysctls;                       // SysctlStep
  Range masked_paths, readonly_paths;  // strings
  Range rlimits;                       // RlimitStep
  uint32_t hostname, domainname;
  uint32_t cwd;
  uint32_t apparmor, selinux;
  Range programs;   // strings: tried in this order
  Range argv, env;  // uint64_t slots holding offsets, the last one 0; the child turns them into pointers
  uint32_t uid, gid;
  Range groups;  // uint32_t
  uint32_t umask;
  int32_t oom_score_adj;
  uint16_t columns, rows;
  uint32_t seccomp_flags;
  Range seccomp;  // sock_filter, 8 bytes each
  uint64_t bounding, effective, permitted, inheritable, ambient;
};

// ---- failures ----

// Where a launch can fail, in the order of the work. `kStageNames` says it to people.
enum class Stage : uint32_t {
  none,
  request,  // the message itself
  slot,     // no room, or the id is in use
  target,   // exec: the container is not there
  stdio,
  log,
  clone,
  plan,
  session,
  join,
  unshare,
  root,
  mount,
  device,
  link,
  mask,
  readonly,
  sysctl,
  hostname,
  terminal,
  pivot,
  oom,
  lsm,
  rlimit,
  working_directory,
  groups,
  user,
  capabilities,
  no_new_privileges,
  seccomp,
  exec,
  network,
  died,
  count,
};

constexpr const char* kStageNames[] = {
    "",
    "request",
    "slot",
    "target container",
    "standard streams",
    "log file",
    "clone",
    "plan",
    "session",
    "join namespace",
    "unshare namespaces",
    "root file system",
    "mount",
    "device",
    "link",
    "mask path",
    "make path read-only",
    "sysctl",
    "hostname",
    "terminal",
    "pivot root",
    "oom score",
    "security label",
    "resource limit",
    "working directory",
    "supplementary groups",
    "user and group",
    "capabilities",
    "no_new_privs",
    "seccomp",
    "exec",
    "network loopback",
    "process died",
};
static_assert(sizeof kStageNames / sizeof *kStageNames == size_t(Stage::count));

struct Failure {  // what a failing child leaves behind, on a socket that closes when exec succeeds
  int32_t err;
  Stage stage;
  int32_t index;
};

}  // namespace coracle::launch

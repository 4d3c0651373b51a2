// SPDX-License-Identifier: Apache-2.0
// The flat plan: everything that a process of a container is made of, as the child between clone3 and exec walks it. It
// lies in a memfd: one Plan at its start, everything else found by offset from there; only the child maps it. Written by
// container/prepare.cc, carried out by child.cc. Plain structs and fixed arrays, because the child has no C library.
// coracle-pause, and the child in it, live on while the daemon is upgraded: layouts only grow at their ends.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace coracle::launch {

constexpr uint32_t kPlanVersion = 2;         // another one when what follows changes otherwise than by growing at its ends
constexpr uint32_t kPlanMagic = 0x434f5231;  // "COR1"
constexpr uint32_t kNoString = 0;            // offset 0 is the Plan itself, so no string is there

// Where the descriptors of a launch stand; those that the plan names count on from kFdMore.
enum LaunchFds { kFdPlan, kFdCgroup, kFdStdin, kFdStdout, kFdStderr, kFdLogDirectory, kFdMore };
// A descriptor that a launch does not need stands as the plan's, so that the places stay the same.
constexpr size_t kFdsMax = 250;       // one message carries 253
constexpr size_t kCarriedMax = 1000;  // beyond them: see kPlanCarries

struct Range {  // `count` elements from `offset`
  uint32_t offset, count;
};

enum class MountKind : uint32_t {
  attach,
  file_system,
  pod_shm,
  own_directory,  // the root's own, on itself: it stays writable when the root becomes read-only
  inner,          // what stands in the container's own tree by then, once more: its source is a path in it
};
// What a coracle-pause can do, for daemons that meet one of an earlier version: its pod goes on without the rest.
constexpr int kLauncherVersion = 3;
constexpr int kLauncherKeepsDirectories = 2;  // since then it knows MountKind::own_directory
constexpr int kLauncherTargets = 2;           // since then a container may live in another's process namespace
constexpr int kLauncherCarries = 3;           // since then kPlanCarries
enum MountFlags : uint32_t {
  kMountOnFile = 1 << 0,    // what is mounted is no directory: make a file where there is nothing
  kMountNoLinks = 1 << 1,   // no link may lie on the way to the destination
  kMountProc = 1 << 2,      // this is the container's own procfs: later steps work through it
  kMountCopyUp = 1 << 3,    // begins with a copy of what the image has at the destination
  kMountKeepMode = 1 << 4,  // the mode of its root is that of the directory it covers, where there is one
  kMountBeneath = 1 << 5,   // inner: with what is mounted beneath the source
};

struct MountStep {
  MountKind kind;
  uint32_t flags;
  uint32_t destination;  // string
  int32_t fd;            // attach: index into the request's descriptors
  uint32_t type;         // file_system: string; inner: the source
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

struct HookStep {  // a program run on the way, with the container's state on its input
  uint32_t path;
  uint32_t timeout_seconds;  // 0 = none
  Range argv, env;           // as the Plan's own
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
  kPlanHold = 1 << 3,           // wait at the start socket before exec
  kPlanMakeDirectory = 1 << 4,  // make the working directory where there is none
  kPlanSetUmask = 1 << 5,
  kPlanSetOomScore = 1 << 6,
  kPlanExec = 1 << 7,             // enter a container instead of making one
  kPlanConsole = 1 << 8,          // bind the terminal to /dev/console
  kPlanCapabilities = 1 << 9,     // absent: capabilities stay as they are
  kPlanDieWithPause = 1 << 10,    // its pid namespace does not do it
  kPlanWait = 1 << 11,            // do nothing before Go
  kPlanGate = 1 << 12,            // say when the file system stands, and go on with Go
  kPlanHostTree = 1 << 13,        // the tree it is born in is the host's: what is mounted there stays unknown to the host
  kPlanJoinedMounts = 1 << 14,    // the file system is that of a mount namespace that was joined: there is nothing to make
  kPlanJoinTargetUser = 1 << 15,  // exec: the container's user namespace too
  kPlanKeepGroups = 1 << 16,      // setgroups is forbidden in this user namespace
  kPlanNoPivot = 1 << 17,         // the root lies on a file system that cannot be pivoted from (initramfs)
  kPlanUnshareMounts = 1 << 18,   // with user_fd: all that was mounted is locked together, and the user's
  kPlanInHostTree = 1 << 19,      // there is no mount namespace: the root is a directory, and stays where it is
  kPlanHostCgroups = 1 << 20,     // it stands in the host's cgroup namespace: a cgroup2 is mounted from one of its own
  kPlanCarries = 1 << 21,         // the last descriptor is a socket that has further ones, in messages of up to kFdsMax
  kPlanLoopback = 1 << 22,        // its network namespace is new, and nobody else brings loopback up
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
  Range argv, env;  // uint64_t slots holding offsets, the last one 0; the child turns them into pointers. argv of the 0
                    // alone: there is nothing to execute, and the child ends well
  uint32_t uid, gid;
  Range groups;  // uint32_t
  uint32_t umask;
  int32_t oom_score_adj;
  uint16_t columns, rows;
  uint32_t seccomp_flags;
  Range seccomp;  // sock_filter, 8 bytes each
  uint64_t bounding, effective, permitted, inheritable, ambient;
  // What follows was added later: a coracle-pause from before does not look at it, so it is never used for pods of before.
  int32_t user_fd;                  // user namespace to join when the file system stands; -1 = none
  uint32_t fs_uid, fs_gid;          // the container's root as the host sees it: owner of what is made in its tree
  uint32_t terminal_uid;            // the same for the process's user
  uint32_t null_path, empty_path;   // what masks are made of, in the tree it is born in; no empty_path: a new tmpfs
  Range create_hooks, start_hooks;  // HookStep
  uint32_t create_state, start_state, state_tail;  // the container's state for hooks; the pid that Go told stands between
  Range scheduler;                                 // one sched_attr, as bytes
  Range affinity;                                  // uint64_t: a bit for each processor
  Range memory_nodes;                              // uint64_t: a bit for each node
  int32_t memory_mode;                             // with its flags; -1 = leave
  int32_t io_priority;                             // -1 = leave
  int64_t personality;                             // -1 = leave
  uint32_t keyring;                                // string: the name of a new session keyring
  uint32_t kept_fds;                               // so many from 3 on stay open
  uint32_t target_namespaces;                      // exec: CLONE_NEW* of the target's that are joined; 0 = all
  uint32_t root_path;                              // where the root stands until it is entered; kNoString = over "/"
  uint32_t bundle;                                 // string: createContainer hooks begin there; kNoString = where we are
};

// What the child says on its report socket, and what it is told there.
enum class Note : uint32_t {
  failure = 1,
  held,       // complete but for exec
  terminal,   // with the near end of a terminal
  gate,       // waits for Go: its file system stands and was not entered
  listener,   // with the descriptor of a seccomp listener
  executing,  // all is done but the exec itself; only with kPlanHostTree
  said,       // with a file of what the hook said that the failure which follows is about
};
struct Go {
  int32_t pid;  // as who launched it sees it
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
  gate,
  create_hook,
  start_hook,
  keyring,
  scheduler,
  io_priority,
  affinity,
  personality,
  memory_policy,
  user_namespace,
  propagation,
  start,
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
    "wait for launcher",
    "createContainer hook",
    "startContainer hook",
    "session keyring",
    "scheduler",
    "io priority",
    "cpu affinity",
    "personality",
    "memory policy",
    "user namespace",
    "mount propagation",
    "wait for start",
};
static_assert(sizeof kStageNames / sizeof *kStageNames == size_t(Stage::count));

// What of Stage::mount the kernel has no word for: an err of Failure.
enum MountMismatch : int32_t { kDirectoryOverFile = -1, kFileOverDirectory = -2 };

struct Failure {  // what a failing child leaves behind, on a socket that closes when exec succeeds
  int32_t err;    // of a hook: its exit code, negated; -128 - signal; of a mount also a MountMismatch
  Stage stage;
  int32_t index;
};
struct Report {
  Note note;
  Failure failure;  // note == failure
};

}  // namespace coracle::launch

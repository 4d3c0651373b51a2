// SPDX-License-Identifier: Apache-2.0
// The flat plan: all properties of a container's process, as the child between clone3 and exec reads them. It is in a memfd that
// only the child maps: one Plan at its start, and everything else by offsets from there. container/prepare.cc writes it, child.cc
// executes it. It uses plain structs and fixed arrays, because the child has no C library. coracle-pause and its child keep
// running while the daemon is upgraded, so layouts may only grow at their ends.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace coracle::launch {

constexpr uint32_t kPlanVersion = 2;         // incremented for any change of the layout other than growth at an end
constexpr uint32_t kPlanMagic = 0x434f5231;  // "COR1"
constexpr uint32_t kNoString = 0;            // offset 0 is the Plan, so no string is there

// The order of a launch's descriptors; those that the plan refers to are numbered from kFdMore.
enum LaunchFds { kFdPlan, kFdCgroup, kFdStdin, kFdStdout, kFdStderr, kFdLogDirectory, kFdMore };
// A descriptor that a launch does not need is replaced by the plan's, so that the order stays the same.
constexpr size_t kFdsMax = 250;       // one message can carry 253
constexpr size_t kCarriedMax = 1000;  // the maximum beyond those: see kPlanCarries

struct Range {  // `count` elements from `offset`
  uint32_t offset, count;
};

enum class MountKind : uint32_t {
  attach,
  file_system,
  pod_shm,
  own_directory,  // the root's own directory mounted on itself: it stays writable when the root becomes read-only
  inner,          // binds a path of the container's own tree as it is at that step; the source is a path in the container
  outer,          // binds a path of the tree that the child starts in, without what is mounted beneath it; only of coracle-oci
  link,           // a symbolic link with the target `type`, if it is not there; only of coracle-oci
};
// The version of a coracle-pause. For a pod with an older one, the daemon omits the features that it lacks.
constexpr int kLauncherVersion = 3;
constexpr int kLauncherKeepsDirectories = 2;  // from this version: MountKind::own_directory
constexpr int kLauncherTargets = 2;           // from this version: a container can use another's pid namespace
constexpr int kLauncherCarries = 3;           // from this version: kPlanCarries
enum MountFlags : uint32_t {
  kMountOnFile = 1 << 0,    // the mounted object is not a directory: create a file if the destination is missing
  kMountNoLinks = 1 << 1,   // the path to the destination may not contain a symbolic link
  kMountProc = 1 << 2,      // this is the container's procfs; later steps use it
  kMountCopyUp = 1 << 3,    // starts with a copy of the image's files at the destination
  kMountKeepMode = 1 << 4,  // the root of the mount gets the mode of the directory that it covers, if there is one
  kMountBeneath = 1 << 5,   // inner: includes the mounts beneath the source
  kMountHolds = 1 << 6,     // a new tmpfs; the next steps mount in it, with
  kMountInHeld = 1 << 7,    // outer: the destination is a directory at the top of that file system, which is still empty
  kMountOnLink = 1 << 8,    // a symbolic link at the destination is covered itself
  kMountAnew = 1 << 9,      // attach: cloned once more at its turn; only of coracle-oci
};

struct MountStep {
  MountKind kind;
  uint32_t flags;
  uint32_t destination;  // string
  int32_t fd;            // attach: index into the request's descriptors
  uint32_t type;         // file_system: string; inner, outer: the source; link: its target
  Range options;         // pairs of strings (uint32_t offsets): key, value (kNoString: a flag)
  uint32_t unused;
  uint64_t attributes;   // MOUNT_ATTR_* of a new mount
  uint64_t propagation;  // MS_SLAVE, ...; 0: private
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

struct HookStep {  // a program to run at that point, with the container's state as standard input
  uint32_t path;
  uint32_t timeout_seconds;  // 0: none
  Range argv, env;           // in the format of the Plan's
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
  kPlanHold = 1 << 3,           // waits at the start socket before exec
  kPlanMakeDirectory = 1 << 4,  // creates the working directory if it is missing
  kPlanSetUmask = 1 << 5,
  kPlanSetOomScore = 1 << 6,
  kPlanExec = 1 << 7,             // enters a container instead of creating one
  kPlanConsole = 1 << 8,          // binds the terminal to /dev/console
  kPlanCapabilities = 1 << 9,     // if unset, capabilities are not changed
  kPlanDieWithPause = 1 << 10,    // for a container without a pid namespace that ends with pause: sets PR_SET_PDEATHSIG
  kPlanWait = 1 << 11,            // do nothing before kGo but joining cgroups
  kPlanGate = 1 << 12,            // say when the file system stands, and go on with kGo
  kPlanHostTree = 1 << 13,        // the child starts in a copy of the host's mount tree: makes it MS_SLAVE against propagation
  kPlanJoinedMounts = 1 << 14,    // the file system is that of a joined mount namespace: nothing is created
  kPlanJoinTargetUser = 1 << 15,  // exec: joins the container's user namespace too
  kPlanKeepGroups = 1 << 16,      // setgroups is forbidden in this user namespace, or the groups are to be kept
  kPlanNoPivot = 1 << 17,         // the root is on a file system that does not support pivot_root (initramfs)
  kPlanUnshareMounts = 1 << 18,   // with user_fd: new mount namespace owned by the user namespace; locks the mounts together
  kPlanInHostTree = 1 << 19,      // there is no mount namespace: the root is a directory and stays where it is
  kPlanHostCgroups = 1 << 20,     // the container is in the host's cgroup namespace: mounts cgroups from a temporary one
  kPlanCarries = 1 << 21,         // the last descriptor is a socket with more descriptors, in messages of up to kFdsMax
  kPlanLoopback = 1 << 22,        // the network namespace is new, and the child brings loopback up
  kPlanV1 = 1 << 23,              // it joins cgroups of v1
  kPlanProc = 1 << 24,            // exec: its launcher gives it a procfs
  kPlanAllProcessors = 1 << 25,   // it may run on all processors of its cgroups, whatever its launcher's affinity is
};

struct Plan {
  uint32_t magic, version, size, flags;
  int32_t root_fd;
  uint32_t unshare;                    // CLONE_NEW*
  uint64_t root_propagation;           // MS_*; 0: private
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
  Range argv, env;  // uint64_t slots with offsets, the last one 0; the child converts them to pointers. argv with only the 0: no
                    // program to execute, and the child exits with 0
  uint32_t uid, gid;
  Range groups;  // uint32_t
  uint32_t umask;
  int32_t oom_score_adj;
  uint16_t columns, rows;
  uint32_t seccomp_flags;
  Range seccomp;  // sock_filter, 8 bytes each
  uint64_t bounding, effective, permitted, inheritable, ambient;
  // Later additions: an older coracle-pause does not read them, so the daemon does not use them for its pods.
  int32_t user_fd;                  // user namespace to join after the file system is complete; -1: none
  uint32_t fs_uid, fs_gid;          // the host ids of the container's root: owner of what is created in its tree
  uint32_t terminal_uid;            // the same for the process's user
  uint32_t null_path, empty_path;   // sources for masks, in the tree that the child starts in; no empty_path: a new tmpfs
  Range create_hooks, start_hooks;  // HookStep
  uint32_t create_state, start_state, state_tail;  // the container's state for hooks; its own pid stands between
  Range scheduler;                                 // one sched_attr, as bytes
  Range affinity;                                  // uint64_t: a bit per processor
  Range memory_nodes;                              // uint64_t: a bit per node
  int32_t memory_mode;                             // with its flags; -1: unchanged
  int32_t io_priority;                             // -1: unchanged
  int64_t personality;                             // -1: unchanged
  uint32_t keyring;                                // string: the name of a new session keyring
  uint32_t kept_fds;                               // number of descriptors from 3 on that stay open
  uint32_t target_namespaces;                      // exec: CLONE_NEW* of the target's namespaces to join; 0: all
  uint32_t root_path;                              // mount point of the root until it is entered; kNoString: over "/"
  uint32_t bundle;                                 // string: working directory of createContainer hooks; kNoString: unchanged
  Range v1_tasks;   // int32_t: descriptors of files `tasks` of cgroup v1, to be joined first of all; with kPlanV1
  int32_t proc_fd;  // with kPlanProc: the launcher's procfs, in which the child is "self"; closed before the container is entered
};

// The messages on the report socket: Reports from the child, Go to the child.
enum class Note : uint32_t {
  failure = 1,
  held,       // everything but exec is done
  terminal,   // with the terminal's master
  gate,       // waits for kGo: its file system stands and was not entered
  listener,   // with the descriptor of a seccomp listener
  executing,  // only exec is left; only with kPlanHostTree
  said,       // with a file that contains the output of a hook; the failure follows
};
constexpr char kGo = 1;

// ---- failures ----

// The stages at which a launch can fail, roughly in the order of the work: new ones are appended, because a running coracle-pause
// sends their numbers. `kStageNames` has their names for messages.
enum class Stage : uint32_t {
  none,
  request,  // the message itself
  slot,     // no free slot, or the id is in use
  target,   // exec: the container does not exist
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
  cgroup,
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
    "cgroup",
};
static_assert(sizeof kStageNames / sizeof *kStageNames == size_t(Stage::count));

// Values of Failure::err for failures of Stage::mount that the kernel does not distinguish.
enum MountMismatch : int32_t { kDirectoryOverFile = -1, kFileOverDirectory = -2 };

struct Failure {  // the report of a failing child, on a socket that closes when exec succeeds
  int32_t err;    // of a hook: its negated exit code, or -128 - signal; of a mount also a MountMismatch
  Stage stage;
  int32_t index;
};
struct Report {
  Note note;
  Failure failure;  // note == failure
};

}  // namespace coracle::launch

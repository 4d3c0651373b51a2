// SPDX-License-Identifier: Apache-2.0
// What the daemon and a pod's coracle-pause say to each other. Both include this; pause has no C library, so it is
// plain structs and fixed arrays. One machine, one build on either end at first, but pause lives on while the daemon is
// upgraded: the version is checked, and layouts only grow at their ends.
//
// The socket is a path-named SEQPACKET socket; one message is one struct, with its descriptors beside it (SCM_RIGHTS).
// Pause listens itself, so that the daemon learns its pid from SO_PEERCRED; it serves whoever runs under its own uid,
// again by SO_PEERCRED. Any number of daemons may come and go: pause never waits for one.
//
//      daemon                                   pause                                 child (a clone of pause)
//        │ clone3(NEWNET NEWIPC NEWUTS NEWPID NEWNS, into cgroup) + execveat ─▶│
//        │── setup  [root, shm, null, /proc/sys, sysctls] ──▶│ own mounts, lo up, hostname
//        │◀──────────────────────────── reply ───────────────│
//        │── launch [plan, cgroup, log dir, mounts …] ──────▶│── clone3(NEWNS NEWPID, into cgroup) ─▶│ walks the plan,
//        │                                                   │◀─ Failure, or end of file ───────────│ execs
//        │◀──────────── reply [pidfd], or stage + errno ─────│
//        │── exec   [plan, cgroup, 0, 1, 2] ────────────────▶│── setns(pid), clone3 ────────────────▶│ setns, execs
//        │◀──────────── reply [pidfd, terminal] ─────────────│
//        │── attach [out, err] ─────────────────────────────▶│  output is copied beside the log
//        │◀──────────── reply [stdin or terminal] ───────────│
//        │── forget ────────────────────────────────────────▶│  drops an ended process
//   on a second connection:
//        │── subscribe ─────────────────────────────────────▶│
//        │◀──────────── state [pidfd], one per process ──────│  then `synced`, then one whenever something changed
//
// The plan is a memfd: one Plan at its start, everything else found by offset from there. Only the child maps it.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace coracle::pause {

constexpr uint32_t kProtocolVersion = 1;
constexpr uint32_t kPlanMagic = 0x434f5231;  // "COR1"
constexpr size_t kIdMax = 132;               // a container's id, NUL included
constexpr size_t kLogNameMax = 256;
constexpr size_t kHostnameMax = 65;
constexpr uint32_t kNoString = 0;  // offset 0 is the Plan itself, so no string is there

// ---- requests ----

enum class Kind : uint32_t {
  setup = 1,
  launch,
  exec,
  release,  // lets a process go that was launched with kHold
  subscribe,
  forget,
  attach,
  end,  // kill and reap everything, then exit
  reply = 100,
  state,
  synced,
};

enum RequestFlags : uint32_t {
  kHasLog = 1 << 0,
  kOpenStdin = 1 << 1,
  kStdinOnce = 1 << 2,  // launch: the container's input ends with its first client's
  kTerminal = 1 << 3,
  kHold = 1 << 4,  // stop before exec until released
  kNewPidNamespace = 1 << 5,
  kSharedPidNamespace = 1 << 6,  // setup: make one; launch: live in it
  kWantStdin = 1 << 7,
  kHostNetwork = 1 << 8,  // setup: leave the network and its sysctls alone
  kHostUts = 1 << 9,
  kInheritStdio = 1 << 10,  // launch: the three descriptors after the cgroup are the process's own
};

struct Request {
  Kind kind;
  uint32_t version;
  uint32_t flags;
  uint32_t log_files;
  uint64_t log_rotate_bytes;
  char id[kIdMax];
  char target[kIdMax];         // exec: the container to enter
  char log_name[kLogNameMax];  // in the log directory; setup: the hostname
};

// Where the descriptors of a request stand. Plans count on from kLaunchFdsFixed / the request's own.
enum SetupFds { kSetupRoot, kSetupShm, kSetupNull, kSetupProcSys, kSetupSysctls, kSetupFds };
enum LaunchFds { kFdPlan, kFdCgroup, kFdStdin, kFdStdout, kFdStderr, kFdLogDirectory, kFdMore };
// A descriptor that a launch does not need stands as the plan's, so that the places stay the same.
constexpr size_t kFdsMax = 250;

struct Reply {
  Kind kind;
  int32_t err;     // positive errno, 0 = done
  uint32_t stage;  // Stage
  int32_t index;   // which mount, device, ... of the stage; -1 = none
  uint64_t started_ns;
};

enum class Status : uint32_t { free, starting, held, running, ended };

struct State {
  Kind kind;
  Status status;
  uint32_t is_exec;
  int32_t wait_status;               // as wait4 gives it
  uint64_t started_ns, finished_ns;  // since the epoch
  uint64_t log_bytes_lost;           // could not be written (disk full)
  char id[kIdMax];
};

// ---- the plan ----

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

}  // namespace coracle::pause

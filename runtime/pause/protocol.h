// SPDX-License-Identifier: Apache-2.0
// The protocol between the daemon and a pod's coracle-pause. Both include this header. pause has no C library, so it uses plain
// structs and fixed arrays. Both ends are on one machine and come from one build at first, but pause keeps running while the
// daemon is upgraded: the version is checked, and layouts only grow at their ends.
//
// The socket is a SEQPACKET socket with a path; one message is one struct with its descriptors (SCM_RIGHTS). pause listens, so
// that the daemon can read its pid from SO_PEERCRED. pause accepts clients with its own uid, also by SO_PEERCRED. Any number of
// daemons may connect and disconnect: pause never blocks on one.
//
//      daemon                                   pause                                 child (a clone of pause)
//        │ clone3(NEWNET NEWIPC NEWUTS NEWPID NEWNS, into cgroup) + execveat ─▶│
//        │── setup  [root, shm, null, /proc/sys, sysctls] ──▶│ own mounts, lo up, hostname
//        │          [net, ipc, uts]: of the pod's own user namespace, which pause itself never enters
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
// A daemon that subscribes during a launch by the previous daemon receives `starting`, and later `running`, or `free` if the
// launch has failed.
//
// The plan: launch/flat_plan.h.
#pragma once

#include "runtime/launch/flat_plan.h"

namespace coracle::pause {

constexpr uint32_t kProtocolVersion = 1;
// Containers and execs of one pod, including ended ones that have not been forgotten. containerd and CRI-O have no limit; an
// unused slot only takes address space, half a page and two line buffers.
constexpr int kSlotsMax = 512;
constexpr size_t kIdMax = 132;  // a container's id with NUL
constexpr size_t kLogNameMax = 256;
constexpr size_t kHostnameMax = 65;

// ---- requests ----

enum class Kind : uint32_t {
  setup = 1,
  launch,
  exec,
  subscribe = 5,
  forget,
  attach,
  end,  // kills and reaps everything, then exits
  reply = 100,
  state,
  synced,
};

enum RequestFlags : uint32_t {
  kHasLog = 1 << 0,
  kOpenStdin = 1 << 1,
  kStdinOnce = 1 << 2,  // launch: the container's stdin is closed when its first client disconnects
  kTerminal = 1 << 3,
  kNewPidNamespace = 1 << 5,
  kSharedPidNamespace = 1 << 6,  // setup: creates one; launch: uses it
  kWantStdin = 1 << 7,
  kHostNetwork = 1 << 8,  // setup: does not change the network or its sysctls
  kHostUts = 1 << 9,
  kInheritStdio = 1 << 10,        // launch: the three descriptors after the cgroup become the process's 0, 1 and 2
  kJoinNamespaces = 1 << 11,      // setup: uses the namespaces that are passed with the request
  kTargetPidNamespace = 1 << 12,  // launch: uses the pid namespace of the container `target`. Since kLauncherTargets
};

struct Request {
  Kind kind;
  uint32_t version;
  uint32_t flags;
  uint32_t log_files;
  uint64_t log_rotate_bytes;
  char id[kIdMax];
  char target[kIdMax];         // exec: the container to enter; launch: see kTargetPidNamespace
  char log_name[kLogNameMax];  // in the log directory; setup: the hostname
};

// The order of the descriptors of a setup request; for launch and exec see LaunchFds.
enum SetupFds { kSetupRoot, kSetupShm, kSetupNull, kSetupProcSys, kSetupSysctls, kSetupFds };
// These follow with kJoinNamespaces.
enum SetupJoins { kSetupNetwork = kSetupFds, kSetupIpc, kSetupUts, kSetupFdsWithJoins };

struct Reply {
  Kind kind;
  int32_t err;     // positive errno; 0: success
  uint32_t stage;  // Stage
  int32_t index;   // index of the mount, device, ... in the stage; -1: none
  uint64_t started_ns;
};

enum class Status : uint32_t { free, starting, running = 3, ended };

struct State {
  Kind kind;
  Status status;
  uint32_t is_exec;
  int32_t wait_status;               // as from wait4
  uint64_t started_ns, finished_ns;  // since the epoch
  uint64_t log_bytes_lost;           // bytes that could not be written (disk full)
  char id[kIdMax];
};

}  // namespace coracle::pause

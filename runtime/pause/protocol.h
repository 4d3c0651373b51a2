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
// A daemon that subscribes while a launch of the one before it is under way is told `starting`, and after that `running`,
// or `free` when the launch failed.
//
// The plan: launch/flat_plan.h.
#pragma once

#include "runtime/launch/flat_plan.h"

namespace coracle::pause {

constexpr uint32_t kProtocolVersion = 1;
// Containers and execs of one pod, ended ones that nobody forgot included. containerd and CRI-O have no such limit; a slot that
// nobody uses takes address space only, half a page of it and two line buffers.
constexpr int kSlotsMax = 512;
constexpr size_t kIdMax = 132;  // a container's id, NUL included
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
  kNewPidNamespace = 1 << 5,
  kSharedPidNamespace = 1 << 6,  // setup: make one; launch: live in it
  kWantStdin = 1 << 7,
  kHostNetwork = 1 << 8,  // setup: leave the network and its sysctls alone
  kHostUts = 1 << 9,
  kInheritStdio = 1 << 10,        // launch: the three descriptors after the cgroup are the process's own
  kJoinNamespaces = 1 << 11,      // setup: live in the namespaces that come with it
  kTargetPidNamespace = 1 << 12,  // launch: live in that of the container `target`. Since kLauncherTargets
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

// Where the descriptors of a request for a setup stand; those of launch and exec: LaunchFds.
enum SetupFds { kSetupRoot, kSetupShm, kSetupNull, kSetupProcSys, kSetupSysctls, kSetupFds };
// With kJoinNamespaces these follow.
enum SetupJoins { kSetupNetwork = kSetupFds, kSetupIpc, kSetupUts, kSetupFdsWithJoins };

struct Reply {
  Kind kind;
  int32_t err;     // positive errno, 0 = done
  uint32_t stage;  // Stage
  int32_t index;   // which mount, device, ... of the stage; -1 = none
  uint64_t started_ns;
};

enum class Status : uint32_t { free, starting, running = 3, ended };

struct State {
  Kind kind;
  Status status;
  uint32_t is_exec;
  int32_t wait_status;               // as wait4 gives it
  uint64_t started_ns, finished_ns;  // since the epoch
  uint64_t log_bytes_lost;           // could not be written (disk full)
  char id[kIdMax];
};

}  // namespace coracle::pause

// SPDX-License-Identifier: Apache-2.0
// The child between clone3 and exec: a clone of coracle-pause for a pod, a program of its own for coracle-oci (launcher.h).
// It walks the launch plan, or dies saying which step did not work. It never returns, allocates nothing, and touches no state of
// its launcher's beside what Launch names. The launcher has one thread.
//
//   [wait for Go] ─▶ namespaces ─▶ mounts, devices, links ─▶ sysctls, terminal ─▶ masks ─▶ [gate: hooks of the launcher]
//     ─▶ createContainer hooks ─▶ pivot ─▶ limits and labels ─▶ [user namespace] ─▶ user, capabilities
//     ─▶ [held: until started] ─▶ startContainer hooks, each with the process's seccomp filter ─▶ seccomp, exec
#pragma once

#include "runtime/launch/flat_plan.h"

namespace coracle::launch {

struct Launch {
  const int* fds;  // in the order of LaunchFds
  int fds_count;
  int report;               // our end of the report socket: Report, or closed by exec
  int stdio[3];             // -1: with a terminal
  int target;               // exec: pidfd of the container's first process; -1
  int start;                // held: a listening socket; who connects lets us go and hears what exec says. -1: not held
  int time_namespace = -1;  // to be entered first
};

[[noreturn]] void run_child(const Launch& launch) noexcept;
// What whoever started the launcher ignores is not ignored by those it launches: once, before the first.
void forget_signal_actions() noexcept;

// ---- inside the child ----

struct Child {
  const Launch* launch;
  char* plan;    // the mapped plan, private to the child
  int report;    // where failures are told: the launcher's, later that of who started us
  int pid;       // as the launcher sees it; 0 = not told
  int root;      // the container's root
  int proc;      // a procfs of the container's pid namespace that nobody can have tampered with; -1 = not needed
  int terminal;  // the terminal's far end, -1 = none

  const Plan& header() const { return *reinterpret_cast<const Plan*>(plan); }
  bool has(uint32_t flag) const { return header().flags & flag; }
  bool enters() const { return has(kPlanExec | kPlanJoinedMounts); }  // a file system that is there already
  const char* text(uint32_t offset) const { return offset == kNoString ? nullptr : plan + offset; }
  template <typename T>
  T* items(Range range) const {
    return reinterpret_cast<T*>(plan + range.offset);
  }
};

[[noreturn]] void fail(const Child& child, Stage stage, int err, int index = -1) noexcept;
// Ends the child when `result` is a negative errno; else returns it.
inline int must(const Child& child, Stage stage, int result, int index = -1) noexcept {
  if (result < 0) fail(child, stage, -result, index);
  return result;
}
// The descriptor that the plan calls `index`.
int request_fd(const Child& child, int index, Stage stage, int at) noexcept;
// Says something to the launcher, with a descriptor beside it unless that is -1.
void tell(const Child& child, Note note, int fd, Stage stage) noexcept;

// mounts.cc: the container's own file system
void make_file_system(Child& child) noexcept;  // root, mounts, devices, links
void have_proc(Child& child) noexcept;         // a private one, when a later step needs it and no mount gave it
void make_working_directory(const Child& child) noexcept;
void restrict_file_system(Child& child) noexcept;  // masks, read-only paths
void enter_root(Child& child) noexcept;            // pivot: from here on nothing else is in reach
void write_proc(const Child& child, const char* path, const char* value, Stage stage, int index) noexcept;
// What is made in the container's tree belongs to the container's root, also where that is another user of the host's.
void act_as_container(const Child& child) noexcept;
void act_as_host(const Child& child) noexcept;

// copy.cc: all that lies in one directory, into another. A negative errno when it does not work.
int copy_tree(int from, int to) noexcept;

// terminal.cc
void open_terminal(Child& child) noexcept;       // in the container's devpts; its near end goes to the launcher
void take_streams(const Child& child) noexcept;  // 0, 1, 2

// hooks.cc
void run_hooks(const Child& child, Range hooks, Stage stage) noexcept;

// confine.cc: the order is the security argument
void set_limits_and_labels(const Child& child) noexcept;  // with the launcher's privileges, still
void join_user_namespace(const Child& child) noexcept;
void confine(const Child& child) noexcept;
void raise_effective(const Child& child) noexcept;  // capabilities that a change of user has switched off while they were kept
void check_program(const Child& child) noexcept;    // that there is one, as far as can be told without executing it
// Of a process that gains no privileges: as late as can be, since a strict filter need not allow more than the exec itself.
void load_last_seccomp(const Child& child) noexcept;
[[noreturn]] void execute(const Child& child) noexcept;
// Pointers where the plan has offsets, for execve: in the child's own copy, once.
char* const* point_at_text(const Child& child, Range vector) noexcept;

}  // namespace coracle::launch

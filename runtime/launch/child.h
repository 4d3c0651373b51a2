// SPDX-License-Identifier: Apache-2.0
// The child between clone3 and exec: a clone of coracle-pause for a pod, a program of its own for coracle-oci (launcher.h).
// It carries out the launch plan, or reports the step that failed and exits. It never returns, allocates nothing, and touches no
// state of its launcher except what Launch names. The launcher has one thread.
//
//   [cgroup v1] ─▶ [wait for kGo] ─▶ namespaces ─▶ mounts, devices, links ─▶ sysctls, terminal ─▶ masks
//     ─▶ [gate: hooks of the launcher] ─▶ createContainer hooks ─▶ pivot ─▶ limits and labels ─▶ [user namespace] ─▶ user,
//     capabilities ─▶ [held: until started] ─▶ startContainer hooks, each with the process's seccomp filter ─▶ seccomp, exec
// A process that enters an existing container gets its labels first, and has closed the host's procfs before it enters.
#pragma once

#include "runtime/launch/flat_plan.h"

namespace coracle::launch {

struct Launch {
  const int* fds;  // in the order of LaunchFds
  int fds_count;
  int report;               // the child's end of the report socket: receives Reports; exec closes it
  int stdio[3];             // -1: with a terminal
  int target;               // exec: pidfd of the container's first process; -1
  int start;                // held: a listening socket; a connection releases the child and receives its reports. -1: not held
  int time_namespace = -1;  // joined first; -1: none
};

[[noreturn]] void run_child(const Launch& launch) noexcept;
// Resets ignored signals, which the launcher inherited, so that its children do not ignore them. Call once before the first.
void forget_signal_actions() noexcept;

// ---- inside the child ----

struct Child {
  const Launch* launch;
  char* plan;                // the mapped plan, a private mapping
  int report;                // the socket for reports: the launcher's, later that of the caller of start
  int root;                  // the container's root
  int proc;                  // a procfs of the container's pid namespace that is safe to use; -1: not needed
  int terminal;              // the terminal's slave; -1: none
  bool owns_mounts = false;  // its mount namespace belongs to the container's user namespace, which it has not joined

  const Plan& header() const { return *reinterpret_cast<const Plan*>(plan); }
  bool has(uint32_t flag) const { return header().flags & flag; }
  bool enters() const { return has(kPlanExec | kPlanJoinedMounts); }  // an existing file system
  const char* text(uint32_t offset) const { return offset == kNoString ? nullptr : plan + offset; }
  template <typename T>
  T* items(Range range) const {
    return reinterpret_cast<T*>(plan + range.offset);
  }
};

[[noreturn]] void fail(const Child& child, Stage stage, int err, int index = -1) noexcept;
// Ends the child if `result` is a negative errno, otherwise returns it.
inline int must(const Child& child, Stage stage, int result, int index = -1) noexcept {
  if (result < 0) fail(child, stage, -result, index);
  return result;
}
// The descriptor with the plan's number `index`.
int request_fd(const Child& child, int index, Stage stage, int at) noexcept;
// Sends a report to the launcher; with a descriptor unless `fd` is -1.
void tell(const Child& child, Note note, int fd, Stage stage) noexcept;

// mounts.cc: the container's file system
void make_file_system(Child& child) noexcept;  // root, mounts, devices, links
void have_proc(Child& child) noexcept;         // opens a procfs if a later step needs it and no mount provided it
void leave_proc(Child& child) noexcept;
void make_working_directory(const Child& child) noexcept;
void restrict_file_system(Child& child) noexcept;              // masks, read-only paths
void make_file_systems_readonly(const Child& child) noexcept;  // those that were kept writable until they are complete; once
bool loses_propagation(const Child& child) noexcept;           // that a user namespace's own copy of the mounts does not have
void restore_propagation(const Child& child) noexcept;         // in that copy, once the root is entered
void enter_root(Child& child) noexcept;                        // pivot: nothing else is reachable afterwards
void write_proc(const Child& child, const char* path, const char* value, Stage stage, int index) noexcept;
// Sets the file system ids to the container's root, so that it owns what is created in its tree, also if it is another user of
// the host.
void act_as_container(const Child& child) noexcept;
void act_as_host(const Child& child) noexcept;

// copy.cc: copies the contents of one directory to another. Returns a negative errno on failure.
int copy_tree(int from, int to) noexcept;

// terminal.cc
void open_terminal(Child& child) noexcept;       // in the container's devpts; the master is sent to the launcher
void take_streams(const Child& child) noexcept;  // 0, 1, 2

// hooks.cc
void run_create_hooks(Child& child) noexcept;  // with a user namespace, from here on its mount namespace is the container's
void keep_propagation(Child& child) noexcept;  // with a user namespace: the same, if mounts would lose theirs otherwise
void run_start_hooks(const Child& child) noexcept;

// confine.cc: the security depends on the order
void set_labels(const Child& child) noexcept;  // and the OOM score: what is told through the procfs. It holds from the exec on
void set_limits(const Child& child) noexcept;  // still with the launcher's privileges
void join_user_namespace(const Child& child) noexcept;
void confine(const Child& child) noexcept;
void raise_effective(const Child& child) noexcept;  // raises capabilities that a change of user under PR_SET_KEEPCAPS has cleared
void check_program(const Child& child) noexcept;    // checks that a program exists, as far as possible without executing it
// Loads the filter of a process with no_new_privs as late as possible, so that a strict filter need only allow the exec itself.
void load_last_seccomp(const Child& child) noexcept;
[[noreturn]] void execute(const Child& child) noexcept;
// Converts the plan's offsets to pointers for execve, once, in the child's private copy.
char* const* point_at_text(const Child& child, Range vector) noexcept;

}  // namespace coracle::launch

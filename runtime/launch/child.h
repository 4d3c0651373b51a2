// SPDX-License-Identifier: Apache-2.0
// The child between clone3 and exec: a clone of pause that walks the launch plan, or dies saying which step did not
// work. It never returns, allocates nothing, and touches no state of pause's beside what Launch names.
#pragma once

#include "runtime/launch/flat_plan.h"

namespace coracle::launch {

struct Launch {
  const int* fds;  // the request's descriptors
  int fds_count;
  int report;    // our end of the report socket: Failure, a terminal, or closed by exec
  int stdio[3];  // -1: with a terminal
  int target;    // exec: pidfd of the container's first process
};

// Tells pause that the process is complete and waits to be let go. The bytes on the report socket are these structs.
enum class Note : uint32_t { failure = 1, held, terminal };
struct Report {
  Note note;
  Failure failure;  // note == failure
};

[[noreturn]] void run_child(const Launch& launch) noexcept;

// ---- inside the child ----

struct Child {
  const Launch* launch;
  char* plan;    // the mapped plan, private to the child
  int root;      // the container's root
  int proc;      // a procfs of the container's pid namespace that nobody can have tampered with; -1 = not needed
  int terminal;  // the terminal's far end, -1 = none

  const Plan& header() const { return *reinterpret_cast<const Plan*>(plan); }
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

// mounts.cc: the container's own file system
void make_file_system(Child& child) noexcept;  // root, mounts, devices, links
void have_proc(Child& child) noexcept;         // a private one, when a later step needs it and no mount gave it
void make_working_directory(const Child& child) noexcept;
void restrict_file_system(Child& child) noexcept;  // masks, read-only paths
void enter_root(Child& child) noexcept;            // pivot: from here on nothing else is in reach
void write_proc(const Child& child, const char* path, const char* value, Stage stage, int index) noexcept;

// terminal.cc
void open_terminal(Child& child) noexcept;       // in the container's devpts; its near end goes to pause
void take_streams(const Child& child) noexcept;  // 0, 1, 2

// confine.cc: the order is the security argument
void confine(const Child& child) noexcept;
[[noreturn]] void execute(const Child& child) noexcept;

}  // namespace coracle::launch

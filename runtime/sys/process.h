// SPDX-License-Identifier: Apache-2.0
// Processes by pidfd, and what we ourselves may do: capabilities, resource limits, the machine's boot.
// Source: clone3(2), pidfd_open(2), waitid(2), prlimit(2), capabilities(7).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"

namespace coracle::sys {

struct SpawnSpec {
  const Fd* program = nullptr;  // executed by descriptor
  std::string name;             // argv[0]
  const Fd* cgroup = nullptr;   // born in it; null = ours
  uint64_t namespaces = 0;      // CLONE_NEW*
  const Fd* fd3 = nullptr;      // becomes descriptor 3; 0, 1 and 2 are /dev/null, nothing else is open
  // Instead: it has what we have, in our session and directory, and this descriptor, whose number is its argument.
  const Fd* beside = nullptr;
  const char* const* environment = nullptr;  // null = empty
};
struct Spawned {
  int pid = 0;
  Fd pidfd;
};
// Starts a program in a session of its own, with no signal handled or blocked. The calling thread sleeps until
// exec has happened; the address space is shared until then and not copied. Errors: with the step that failed.
Result<Spawned> spawn(const SpawnSpec& spec);

Result<Fd> open_pidfd(int pid);
// The process's pid as this process sees it. Errors: not_found when it has ended.
Result<int> pid_of(const Fd& pidfd);
Result<void> send_signal(const Fd& pidfd, int signal);             // Errors: not_found when it has ended
void reap(const Fd& pidfd);                                        // buries a child of ours that has ended; nothing else happens
Result<Fd> namespace_of(const Fd& pidfd, const char* type);        // "net", "mnt", ...: an open namespace
Result<bool> is_own_namespace(const Fd& found, const char* type);  // an open namespace is the one this process is in
// CLONE_NEW* of the namespaces (uts, ipc, net, cgroup, time, pid) of a process that are not ours. Errors: not_found, it has
// ended.
Result<uint64_t> foreign_namespaces(const Fd& pidfd);
Result<Fd> root_of(const Fd& pidfd);  // the process's "/", O_PATH; beyond it all is hostile

// Blocks these signals for the process and makes them readable. Call before any thread is started.
Result<Fd> make_signalfd(const std::vector<int>& signals);
std::optional<int> read_signal(const Fd& signals);  // one that has arrived; does not block

struct Limits {
  uint64_t soft, hard;
};
std::optional<int> rlimit_number(const std::string& name);  // "RLIMIT_NOFILE"
Result<Limits> own_limit(int resource);
void raise_open_files();  // our soft limit to the hard one

Result<uint64_t> own_capabilities();  // permitted, a bit each
uint32_t own_uid();
uint32_t own_gid();
int own_pid();
std::string environment(const char* name);   // "" when absent
std::vector<std::string> own_environment();  // NAME=value, all of it
bool is_open(int fd);
Result<void> set_own_affinity(const std::vector<uint64_t>& processors);  // a bit each
Result<int> wait_for_exit(const Fd& pidfd);  // of a child of ours, which is buried: its exit code, 128 + signal

// What a process gives up for good, before it starts threads.
Result<void> die_with_parent(int parent);         // SIGKILL when the thread that made us ends. Errors: not_found, it has
Result<void> keep_capabilities(uint64_t wanted);  // these of those it has, and none can be gained by executing
Result<void> filter_system_calls(std::span<const uint64_t> program, uint32_t flags);  // after keep_capabilities
// These take nothing from what it executes as root, for that gets its rights anew: where all that we start may need them.
// `needless`: a bit each. They are not in force in this thread, nor in those that it starts; none is handed on by inheritance.
Result<void> do_without_capabilities(uint64_t needless);
// No core file, in which every secret would lie, no debugger but root's; and where the kernel can forbid it (Linux 6.6), nothing
// that was written becomes code.
void close_own_memory();
bool takes_seccomp_flags(uint32_t flags);  // whether this kernel knows them, SECCOMP_FILTER_FLAG_*; changes nothing
Result<int> own_oom_score();               // /proc/self/oom_score_adj
Result<void> set_own_oom_score(int score);
Result<std::string> boot_id();  // changes with every boot

// Whether the kernel drops a signal that the process knows nothing of: the first one of a process namespace gets only those that
// it has a handler for, SIGKILL and SIGSTOP from outside apart. One that has said to ignore the signal is no such case, nor is
// who is not there. Source: pid_namespaces(7).
bool is_dropped(int pid, int signal);

std::optional<uint64_t> namespace_flag(const std::string& oci_name);  // "network" → CLONE_NEWNET

}  // namespace coracle::sys

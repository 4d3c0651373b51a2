// SPDX-License-Identifier: Apache-2.0
// Processes by pidfd, and the properties of our own process: capabilities, resource limits, the boot id.
// Errors: errno's, unless stated. Source: clone3(2), pidfd_open(2), waitid(2), prlimit(2), capabilities(7).
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
  const Fd* cgroup = nullptr;   // started in it; null: our own
  uint64_t namespaces = 0;      // CLONE_NEW*
  const Fd* fd3 = nullptr;      // becomes descriptor 3; 0, 1 and 2 are /dev/null, no other descriptor is open
  // Alternative to fd3: the program inherits our descriptors, session and directory, and this descriptor, whose number is its
  // argument.
  const Fd* beside = nullptr;
  const char* const* environment = nullptr;  // null = empty
};
struct Spawned {
  int pid = 0;
  Fd pidfd;
};
// Starts a program in a new session, with no signal handled or blocked. Blocks until exec has happened: until then the child
// shares the address space, which is not copied. Errors: with the step that failed.
Result<Spawned> spawn(const SpawnSpec& spec);

Result<Fd> open_pidfd(int pid);
// The pid of the process in our pid namespace. Errors: not_found if it has ended.
Result<int> pid_of(const Fd& pidfd);
Result<void> send_signal(const Fd& pidfd, int signal);             // Errors: not_found if it has ended
void reap(const Fd& pidfd);                                        // waits for a child of ours that has ended; does nothing else
Result<Fd> namespace_of(const Fd& pidfd, const char* type);        // "net", "mnt", ...: an open namespace
Result<bool> is_own_namespace(const Fd& found, const char* type);  // true if `found` is the namespace of this process
// CLONE_NEW* flags of the namespaces (uts, ipc, net, cgroup, time, pid) of a process that differ from ours. Errors: not_found if
// it has ended.
Result<uint64_t> foreign_namespaces(const Fd& pidfd);
Result<Fd> root_of(const Fd& pidfd);  // the process's "/", O_PATH; its contents are untrusted

// Blocks these signals for the process and makes them readable. Call before the first thread.
Result<Fd> make_signalfd(const std::vector<int>& signals);
std::optional<int> read_signal(const Fd& signals);  // a pending signal; does not block

struct Limits {
  uint64_t soft, hard;
};
std::optional<int> rlimit_number(const std::string& name);  // "RLIMIT_NOFILE"
Result<Limits> own_limit(int resource);
void raise_open_files();  // sets our soft limit to the hard limit

Result<uint64_t> own_capabilities();  // the permitted set as a bit mask
uint32_t own_uid();
uint32_t own_gid();
int own_pid();
std::string environment(const char* name);   // "" when absent
std::vector<std::string> own_environment();  // NAME=value, all of it
bool is_open(int fd);
Result<void> set_own_affinity(const std::vector<uint64_t>& processors);  // a bit mask
Result<int> wait_for_exit(const Fd& pidfd);  // waits for a child of ours and reaps it; its exit code or 128 + signal

// Restrictions that cannot be undone. Call before the first thread.
Result<void> die_with_parent(int parent);         // SIGKILL when the parent's thread ends. Errors: not_found if it has
Result<void> keep_capabilities(uint64_t wanted);  // keeps these of its capabilities; exec cannot add any
Result<void> filter_system_calls(std::span<const uint64_t> program, uint32_t flags);  // after keep_capabilities
// Drops `needless` (a bit mask) from the effective set of this thread and the threads it starts, and clears the inheritable and
// ambient sets. A program that is executed as root regains all capabilities, so it can be used where our children need them.
Result<void> do_without_capabilities(uint64_t needless);
// Protects the memory of this process: no core file, which would contain secrets, and no ptrace by non-root. If the kernel
// supports it (Linux 6.6), memory that was writable cannot become executable.
void close_own_memory();
bool takes_seccomp_flags(uint32_t flags);  // true if the kernel supports these SECCOMP_FILTER_FLAG_*; changes nothing
Result<int> own_oom_score();               // /proc/self/oom_score_adj
Result<void> set_own_oom_score(int score);
Result<std::string> boot_id();  // changes with every boot

// True if the kernel drops the signal for this process: the init process of a pid namespace receives only signals for which it
// has a handler, except SIGKILL and SIGSTOP from outside. False for an ignored signal and for a process that does not exist.
// Source: pid_namespaces(7).
bool is_dropped(int pid, int signal);

std::optional<uint64_t> namespace_flag(const std::string& oci_name);  // "network" → CLONE_NEWNET

}  // namespace coracle::sys

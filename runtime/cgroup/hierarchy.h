// SPDX-License-Identifier: Apache-2.0
// The cgroup v2 hierarchy: its mount point, the cgroup of a process, the available controllers, and enabling controllers for
// children. Paths are the kernel's, "/system.slice/a.service" below the mount point. Source: kernel
// Documentation/admin-guide/cgroup-v2.rst; cgroups(7).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"

namespace coracle::cgroup {

// The mount point of cgroup v2. Errors: unsupported if it is not mounted.
Result<std::string> mount_point();
// Finds it in the text of /proc/PID/mountinfo. Pure. Errors: unsupported.
Result<std::string> mount_point_in(std::string_view mountinfo);
// The cgroup of this process. Errors: unsupported if it is in no cgroup v2.
Result<std::string> own_path();
// The cgroup of process `pid`. Errors: not_found if it has ended.
Result<std::string> path_of(int pid);
// Reads the line "0::/path" of /proc/PID/cgroup. Pure. Errors: unsupported if there is none.
Result<std::string> path_in(std::string_view proc_cgroup);

// The controllers that cgroup v1 hierarchies hold and cgroup v2 therefore cannot use. Takes the text of /proc/PID/cgroup. Pure.
std::vector<std::string> held_by_v1(std::string_view proc_cgroup);

// The parts of a cgroup's path: "/a" and "b" for "/a/b". Pure.
std::string parent_of(const std::string& path);
std::string name_of_last(const std::string& path);

constexpr uint64_t kUnlimited = ~uint64_t(0);
constexpr uint32_t kProcessorsMax = 8192;  // the highest processor number in a list like "0-3,7"
// Parses a limit of the kernel: a number, or "max" = kUnlimited.
std::optional<uint64_t> parse_limit(std::string_view text);

// Reads a file of words such as "cpu memory pids". Returns "" if the file does not exist.
std::string read_words(const Fd& cgroup, const char* file);
bool has_word(std::string_view words, std::string_view word);

// The controllers that every container uses. Each controller costs the kernel a little per cgroup, so others are only enabled
// when a limit needs them.
extern const std::vector<std::string> kControllers;  // cpu, memory, pids, io, cpuset
// Enables those of `wanted` that are available for the children of `cgroup`: in one write, or one by one if the kernel rejects
// one of them. It cannot succeed if `cgroup` itself contains processes, see clear(). To see what was rejected, read
// cgroup.subtree_control.
void enable_controllers(const Fd& cgroup, const std::vector<std::string>& wanted = kControllers);
// Moves the processes of `cgroup` itself into a child of that name, so that controllers can be enabled. Does nothing in the root
// cgroup, which does not need it. Errors: the kernel's when creating the child or moving a process.
Result<void> clear(const Fd& cgroup, const std::string& leaf);

// Checks cgroup.type. Errors: unsupported, with the type ("threaded", ...).
Result<void> check_domain(const Fd& cgroup, const std::string& path);

}  // namespace coracle::cgroup

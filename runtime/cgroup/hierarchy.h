// SPDX-License-Identifier: Apache-2.0
// The hierarchy of cgroup v2: where it is mounted, where a process stands in it, which controllers are to be had, and
// switching them on for what is made inside a cgroup. Paths are those of the kernel, "/system.slice/a.service" beneath
// the mount point. Source: kernel Documentation/admin-guide/cgroup-v2.rst; cgroups(7).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"

namespace coracle::cgroup {

// Where cgroup v2 is mounted. Errors: unsupported, it is not.
Result<std::string> mount_point();
// By the text of /proc/PID/mountinfo. Pure. Errors: unsupported.
Result<std::string> mount_point_in(std::string_view mountinfo);
// Where this process stands. Errors: unsupported, in no cgroup v2.
Result<std::string> own_path();
// Where process `pid` stands. Errors: not_found, it has ended.
Result<std::string> path_of(int pid);
// The line "0::/path" of /proc/PID/cgroup. Pure. Errors: unsupported, there is none.
Result<std::string> path_in(std::string_view proc_cgroup);

// The controllers that a hierarchy of cgroup v1 holds; cgroup v2 cannot have them then. Pure, of /proc/PID/cgroup.
std::vector<std::string> held_by_v1(std::string_view proc_cgroup);

// Of a cgroup's path: "/a" and "b" of "/a/b". Pure.
std::string parent_of(const std::string& path);
std::string name_of_last(const std::string& path);

constexpr uint64_t kUnlimited = ~uint64_t(0);
constexpr uint32_t kProcessorsMax = 8192;  // of a list like "0-3,7"
// A limit as the kernel writes it: a number, or "max" = kUnlimited.
std::optional<uint64_t> parse_limit(std::string_view text);

// A file of words: "cpu memory pids". Empty when there is no such file.
std::string read_words(const Fd& cgroup, const char* file);
bool has_word(std::string_view words, std::string_view word);

// Those that every container is counted and limited by. Each costs the kernel a little for every cgroup, so the others are
// only switched on where a limit asks for them.
extern const std::vector<std::string> kControllers;  // cpu, memory, pids, io, cpuset
// Switches on, for what is made inside, those of `wanted` that are there: in one write, and each by itself where the
// kernel refuses one of them. Not where processes stand in the cgroup itself, see clear(). What was refused is seen by
// looking at cgroup.subtree_control.
void enable_controllers(const Fd& cgroup, const std::vector<std::string>& wanted = kControllers);
// Moves what stands in `cgroup` itself into a leaf of that name inside it, so that controllers can be enabled. Nothing is
// done in the machine's true root, which has no such rule. Errors: what the kernel said to the leaf or to the move.
Result<void> clear(const Fd& cgroup, const std::string& leaf);

// What a cgroup can be used for, by its cgroup.type. Errors: unsupported, with what is the matter ("threaded", ...).
Result<void> check_domain(const Fd& cgroup, const std::string& path);

}  // namespace coracle::cgroup

// SPDX-License-Identifier: Apache-2.0
// The cgroups of pods: a subtree of cgroup v2 that the daemon owns, below a root that is found or configured, and the operations
// on them.
//
//   <root>/<class>/<sandbox>/pause          coracle-pause
//                           /c-<container>  a container and the processes executed in it
//
// Processes are only in leaves, as cgroup v2 requires. If v1 holds the controllers, the tree still serves for killing, CPU
// accounting and device filters; enforcement() reports what it cannot do. Under systemd the root is the cgroup of a service
// without a process of its own (coracle-pods.service, Delegate=yes). So it has a single writer, the daemon, and only ends with
// that service; systemd writes its own limits. The daemon's own service cannot be the root: a cgroup with controllers enabled for
// its children may contain no process, so systemd could not start the daemon there again while pods are running. Source: kernel
// Documentation/admin-guide/cgroup-v2.rst; systemd's CGROUP_DELEGATION.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"
#include "runtime/base/units.h"
#include "runtime/oci/spec.h"
#include "runtime/runtime.h"

namespace coracle::cgroup {

constexpr int kPodsMemoryPercent = 80;  // coracle-pods.service has the same MemoryMax= for a delegated root

class Cgroups {
 public:
  // `root`: a directory of cgroup v2, created if absent. If it is "", the root is `delegated` (relative to the hierarchy) if that
  // exists, otherwise "coracle" at the top. If this process is in `root` itself, it moves into a leaf. If the root is not
  // `delegated` and has no memory limit, it gets one of kPodsMemoryPercent of the machine's memory, so that a pod without a limit
  // cannot exhaust the machine. Errors: unsupported if there is no cgroup v2.
  static Result<Cgroups> open(const std::string& root, const std::string& delegated = "");

  const runtime::Enforcement& enforcement() const { return enforcement_; }
  // The memory limit of all pods together: the lowest memory.max of the root and its ancestors, read at each call. Nothing: no
  // limit.
  std::optional<Bytes> memory_bound() const;
  const std::string& path() const { return path_; }

  // `path` is relative to the root. With `has_children`, the controllers are enabled for its children.
  Result<Fd> make(const std::string& path, bool has_children) const;
  Result<Fd> find(const std::string& path) const;  // Errors: not_found
  // Kills all processes in it, waits for their end, and removes it with its descendants. It is no error if nothing is there.
  // Errors: timeout.
  Result<void> remove(const std::string& path, std::chrono::milliseconds timeout) const;

  // Sets those limits that this machine can enforce. Errors: invalid, with the name of the setting.
  Result<void> apply(const Fd& cgroup, const oci::Resources& resources, bool is_container) const;

 private:
  Cgroups() = default;
  std::string path_;
  std::string enabled_;  // the controllers enabled for children of root_, as the kernel prints them
  Fd root_;
  runtime::Enforcement enforcement_;
};

}  // namespace coracle::cgroup

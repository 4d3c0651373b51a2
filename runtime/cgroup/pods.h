// SPDX-License-Identifier: Apache-2.0
// The pods' cgroups: a tree of ours in cgroup v2, made beneath a root that is found or given, and what may be asked of
// each.
//
//   <root>/<class>/<sandbox>/pause          coracle-pause
//                           /c-<container>  a container and what is executed in it
//
// Processes stand only in leaves, as v2 asks. Where v1 holds the controllers, the tree still kills, counts CPU time and
// filters devices; enforcement() says what it cannot do.
// Under systemd the root is the cgroup of a service that has no process of its own (coracle-pods.service, Delegate=yes),
// so that it has one writer, us, and ends with that service alone; its own limits are systemd's to write. Not the daemon's own
// service: a cgroup with controllers enabled for its children may hold no process, so systemd could never start the daemon there
// again while pods live on. Source: kernel Documentation/admin-guide/cgroup-v2.rst; systemd's CGROUP_DELEGATION.
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

constexpr int kPodsMemoryPercent = 80;  // MemoryMax= of coracle-pods.service is the same where systemd holds the root

class Cgroups {
 public:
  // `root`: a directory of cgroup v2, made when absent; "" = `delegated`, relative to the hierarchy, where there is such,
  // else "coracle" at the top. When our own process stands in `root`, it moves into a leaf of it. Errors: unsupported when
  // there is no cgroup v2. A root that is not `delegated` and whose memory has no bound gets one, kPodsMemoryPercent of the
  // machine's: a program that takes all it can get must not take the machine with it.
  static Result<Cgroups> open(const std::string& root, const std::string& delegated = "");

  const runtime::Enforcement& enforcement() const { return enforcement_; }
  // What all pods together may hold of memory: the least memory.max from the root up, read at each call. Nothing: no bound.
  std::optional<Bytes> memory_bound() const;
  const std::string& path() const { return path_; }

  // `path` is relative to the root. With `has_children`, the controllers are enabled for what is made inside.
  Result<Fd> make(const std::string& path, bool has_children) const;
  Result<Fd> find(const std::string& path) const;  // Errors: not_found
  // Kills what is inside, waits until it is gone, removes it and all beneath. Nothing there is success. Errors:
  // timeout.
  Result<void> remove(const std::string& path, std::chrono::milliseconds patience) const;

  // Sets what the resources ask for and this machine can hold. Errors: invalid, with the setting's name.
  Result<void> apply(const Fd& cgroup, const oci::Resources& resources, bool is_container) const;

 private:
  Cgroups() = default;
  std::string path_;
  std::string enabled_;  // the controllers that root_ has switched on for its children, as the kernel words them
  Fd root_;
  runtime::Enforcement enforcement_;
};

}  // namespace coracle::cgroup

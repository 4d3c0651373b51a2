// SPDX-License-Identifier: Apache-2.0
// cgroup v1 beside cgroup v2. If v1 hierarchies hold controllers, a container's cgroup has a counterpart at the same path in each
// of them. The limits of these controllers are written there, processes are moved there (v1 has no CLONE_INTO_CGROUP), and
// statistics are read there. Membership, killing, freezing and devices stay with cgroup v2, which needs no controllers for them.
// Only for the OCI command line; for pods, Enforcement reports what is not enforced. Source: kernel
// Documentation/admin-guide/cgroup-v1; runtime-spec config-linux.md "Control groups"; runc, for the order of writes.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"
#include "runtime/oci/spec.h"

namespace coracle::cgroup {

struct V1Hierarchy {
  std::string mount_point;
  std::vector<std::string> controllers;  // v1 names: "blkio"
  bool operator==(const V1Hierarchy&) const = default;
};
// The hierarchies with controllers, from the text of /proc/PID/mountinfo. Pure.
std::vector<V1Hierarchy> v1_hierarchies_in(std::string_view mountinfo);

struct V1Setting {
  std::string controller;  // v1 name
  std::string file, value, field;
  std::string other_file;      // written instead if `file` does not exist; empty: no alternative
  bool may_be_absent = false;  // the limit holds without this file
  bool operator==(const V1Setting&) const = default;
};
struct V1Limits {
  std::vector<V1Setting> settings;  // in the order in which to write them
  oci::Resources rest;              // what cgroup v2 enforces
};
// `held`: the v2 names of the controllers that v1 holds (held_by_v1() in hierarchy.h). Pure.
V1Limits v1_limits(const oci::Resources& resources, const std::vector<std::string>& held);

// Those of the controllers held by v1 whose hierarchies are mounted in our mount namespace. Input and output are v2 names.
Result<std::vector<std::string>> held_and_mounted(const std::vector<std::string>& held);

// The counterparts of one cgroup.
class V1Cgroup {
 public:
  V1Cgroup() = default;  // none
  // Creates the missing ones at `path` ("/a/b"). Errors: with the hierarchy's mount point; on failure nothing is left.
  static Result<V1Cgroup> make(const std::string& path);
  static Result<V1Cgroup> find(const std::string& path);  // those that exist
  bool is_empty() const { return directories_.empty(); }
  // Those of the controllers held by v1 that have a counterpart here. Input and output are v2 names.
  std::vector<std::string> held_of(const std::vector<std::string>& held) const;
  // By the v1 name of the controller.
  const std::map<std::string, Fd>& directories() const { return directories_; }

  Result<void> put_in(int pid) const;
  // Errors: unsupported if a file does not exist; the kernel's for an invalid value; each names the field.
  Result<void> write(const std::vector<V1Setting>& settings) const;
  // The counterparts must contain no process. Also removes their parents below `base` that have become empty.
  static Result<void> remove(const std::string& path, const std::string& base);

 private:
  std::map<std::string, Fd> directories_;
};

}  // namespace coracle::cgroup

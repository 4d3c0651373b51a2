// SPDX-License-Identifier: Apache-2.0
// cgroup v1 beside cgroup v2. Where hierarchies of v1 hold controllers, a container's own cgroup has a counterpart of the same
// path in each of them: limits of their controllers are written there, processes are moved there (v1 knows no birth in a cgroup),
// and statistics are read there. Which processes there are, killing, freezing and devices stay cgroup v2's, which needs no
// controller for them. For the OCI command line; pods say instead what is not enforced. Source: kernel
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
  std::vector<std::string> controllers;  // as v1 names them: "blkio"
  bool operator==(const V1Hierarchy&) const = default;
};
// Those with controllers. By the text of /proc/PID/mountinfo. Pure.
std::vector<V1Hierarchy> v1_hierarchies_in(std::string_view mountinfo);

struct V1Setting {
  std::string controller;  // as v1 names it
  std::string file, value, field;
  std::string other_file;      // written instead where `file` is not there; empty: nothing takes its place
  bool may_be_absent = false;  // it holds without this file as well
  bool operator==(const V1Setting&) const = default;
};
struct V1Limits {
  std::vector<V1Setting> settings;  // in the order in which they are to be written
  oci::Resources rest;              // what is cgroup v2's to hold
};
// `held`: the controllers that v1 has, as cgroup v2 names them (held_by_v1() in hierarchy.h). Pure.
V1Limits v1_limits(const oci::Resources& resources, const std::vector<std::string>& held);

// Of the controllers that v1 has, those whose hierarchies are mounted where we are. Both as cgroup v2 names them.
Result<std::vector<std::string>> held_and_mounted(const std::vector<std::string>& held);

// The counterparts of one cgroup.
class V1Cgroup {
 public:
  V1Cgroup() = default;  // none
  // Makes them at `path` ("/a/b") where they are not there. Errors: with the hierarchy's mount point; nothing stays.
  static Result<V1Cgroup> make(const std::string& path);
  static Result<V1Cgroup> find(const std::string& path);  // those that are there
  bool is_empty() const { return directories_.empty(); }
  // Of the controllers that v1 has, those that have a counterpart here. Both as cgroup v2 names them.
  std::vector<std::string> held_of(const std::vector<std::string>& held) const;
  // By controller, as v1 names it.
  const std::map<std::string, Fd>& directories() const { return directories_; }

  Result<void> put_in(int pid) const;
  // Errors: unsupported, a file is not there; what the kernel said to a value; each names the field.
  Result<void> write(const std::vector<V1Setting>& settings) const;
  // No process may be in them. What was made on the way beneath `base` goes with the last one.
  static Result<void> remove(const std::string& path, const std::string& base);

 private:
  std::map<std::string, Fd> directories_;
};

}  // namespace coracle::cgroup

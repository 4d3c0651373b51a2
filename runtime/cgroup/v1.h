// SPDX-License-Identifier: Apache-2.0
// cgroup v1 beside cgroup v2. Where hierarchies of v1 hold controllers, a container's own cgroup has a counterpart of the same
// path in each of them: limits of their controllers are written there, processes join it by themselves (v1 cannot clone into a
// cgroup), and statistics are read there. Which processes there are, killing, freezing and devices stay cgroup v2's, which needs
// no controller for them. For the OCI command line; pods say instead what is not enforced. Source: kernel
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
// Those that are mounted where we are.
Result<std::vector<V1Hierarchy>> v1_hierarchies();

// Cgroups inside a container's, for another process of it.
struct SubCgroups {
  std::string everywhere;                 // "": the container's own
  std::map<std::string, std::string> of;  // of controllers of v1, by the names that v1 has for them
};

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

// Of the controllers that v1 has, those whose hierarchies are among these. Both as cgroup v2 names them. Pure.
std::vector<std::string> held_and_mounted(const std::vector<std::string>& held, const std::vector<V1Hierarchy>& hierarchies);

// The counterparts of one cgroup.
class V1Cgroup {
 public:
  V1Cgroup() = default;  // none
  // Creates the missing ones at `path` ("/a/b"). Errors: with the hierarchy's mount point; on failure nothing is left.
  static Result<V1Cgroup> make(const std::vector<V1Hierarchy>& hierarchies, const std::string& path);
  static V1Cgroup find(const std::vector<V1Hierarchy>& hierarchies, const std::string& path);  // those that exist
  bool is_empty() const { return parts_.empty(); }
  // Those of the controllers held by v1 that have a counterpart here. Input and output are v2 names.
  std::vector<std::string> held_of(const std::vector<std::string>& held) const;
  // By controller, as v1 names it; several may share one.
  std::map<std::string, const Fd*> directories() const;

  // The file `tasks` of each that is there. A process of one thread joins by writing 0 there, and for that the kernel makes
  // nobody wait. For the number of a process it lets pass what all processors are about first, which takes milliseconds.
  // Errors: not_found if a cgroup of `inside.of` does not exist; invalid if no hierarchy has its controller. Where
  // `inside.everywhere` does not exist it is the container's own: it may have been made in others only.
  static Result<std::vector<Fd>> open_tasks(const std::vector<V1Hierarchy>& hierarchies, const std::string& path,
                                            const SubCgroups& inside = {});
  Result<void> put_in(int pid) const;
  // Errors: unsupported if a file does not exist; the kernel's for an invalid value; each names the field.
  Result<void> write(const std::vector<V1Setting>& settings) const;
  // The counterparts must contain no process. Also removes their parents below `base` that have become empty.
  static Result<void> remove(const std::vector<V1Hierarchy>& hierarchies, const std::string& path, const std::string& base);

 private:
  struct Part {
    std::vector<std::string> controllers;
    Fd directory;
  };
  const Fd* directory_of(const std::string& controller) const;  // null: none

  std::vector<Part> parts_;  // one a hierarchy
};

}  // namespace coracle::cgroup

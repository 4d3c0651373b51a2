// SPDX-License-Identifier: Apache-2.0
// A container's own cgroup, for the OCI command line: made by one of three managers, found again by what was recorded,
// limited, frozen, killed, watched and removed.
//
//   cgroupfs   make(…, 0) ─▶ limits stand ─▶ the process is born in directory() (CLONE_INTO_CGROUP)
//   systemd    the process is there and waits ─▶ make(…, pid): systemd makes a scope around it, it moves to "container" inside,
//              limits stand
//   cgroupfs   where cgroup v1 holds controllers, root's containers have counterparts there (v1.h); a process joins them by
//              v1_tasks() before it does anything. Not under systemd, which keeps v1 by itself.
//   disabled   make() succeeds, exists() is false, what needs a cgroup is `unsupported`, limits are warnings
//
// systemd keeps the scope's own files (MemoryMax, CPUWeight, …) as it was told, also after a reload, so it is told all it
// has words for; the rest is written beside it, as Delegate=yes allows. The device filter is ours under every manager.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/cgroup/control.h"
#include "runtime/cgroup/place.h"
#include "runtime/cgroup/stats.h"
#include "runtime/cgroup/v1.h"
#include "runtime/cgroup/watch.h"
#include "runtime/oci/spec.h"
#include "runtime/sys/bpf.h"

namespace coracle::cgroup {

// Names the cgroup in systemd's scope that holds the container. The annotation is crun's.
constexpr const char* kSubgroupAnnotation = "run.oci.systemd.subgroup";

// The calling process. self() reads it once; it is a value so that tests can replace it.
struct Caller {
  // Root in the initial user namespace. Other callers use their own systemd instance and only cgroups that are delegated to them.
  bool is_privileged = true;
  std::string mount_point;              // "/sys/fs/cgroup"
  std::string own_path;                 // "/user.slice/user-1000.slice/…"
  std::vector<std::string> held_by_v1;  // controllers that cgroup v2 cannot use here, by their v2 names
  // `in_initial_user_namespace`: saves reading it if the caller knows. Errors: unsupported if there is no cgroup v2.
  static Result<Caller> self(std::optional<bool> in_initial_user_namespace = std::nullopt);
};

struct Wanted {
  Manager manager = Manager::cgroupfs;
  std::string id;
  std::string cgroups_path;  // linux.cgroupsPath
  oci::Resources resources;
  std::string oci_version;                         // decides their meaning: of_version()
  std::map<std::string, std::string> annotations;  // "org.systemd.property.…" become properties of the scope
  Unenforceable unenforceable = Unenforceable::warn_on_v1;
};

// What a later call needs to find the cgroup again; stored in the container's state.
struct Record {
  Manager manager = Manager::disabled;
  std::string path;      // below the mount point; "": none
  std::string unit;      // systemd: the scope
  bool is_user = false;  // … of the user's own systemd
};

class Container {
 public:
  Container() = default;  // without a cgroup
  // True if make() needs the process: systemd does not create an empty scope.
  static bool needs_process(Manager manager) { return manager == Manager::systemd; }
  // Creates the cgroup, sets its limits and, with a `pid`, moves the process into it. On failure nothing is left, and a process
  // that was passed to systemd is killed with its scope. An unprivileged caller without a delegated cgroup gets none, unless it
  // asked for limits or a path. Errors: conflict if the cgroup contains processes already; invalid and unsupported with the field
  // of config.json; forbidden.
  static Result<Container> make(const Caller& caller, const Wanted& wanted, int pid);
  // Finds a cgroup by its record. If it has been removed, exists() is false; remove() still stops its scope.
  static Result<Container> find(const Caller& caller, const Record& record);

  bool exists() const { return bool(directory_); }
  const Fd& directory() const { return directory_; }
  const Record& record() const { return record_; }
  std::string host_path() const { return mount_point_ + record_.path; }  // "/sys/fs/cgroup/a/b"
  // Whether it may have counterparts in cgroup v1, and their hierarchies; none without counterparts.
  bool has_v1() const { return has_v1_; }
  Result<std::vector<V1Hierarchy>> hierarchies() const;
  // What a process that is born in directory() joins these by: see V1Cgroup::open_tasks().
  Result<std::vector<Fd>> v1_tasks(const SubCgroups& inside = {}) const;
  // The limits that make() and update() could not enforce, one sentence each; for the log.
  const std::vector<std::string>& warnings() const { return warnings_; }

  // Sets the limits in `resources` and keeps the others. memory.swap cannot be converted without a memory limit in `resources`,
  // so the caller passes its earlier resources with the changes merged in.
  Result<void> update(const oci::Resources& resources, Unenforceable unenforceable, const std::string& oci_version = "");
  // Sets the device rules; the last match decides. Replaces the previous program atomically; programs that others have attached
  // stay. Does nothing for an unprivileged caller, who cannot attach one: it cannot open more devices in a container than before.
  Result<void> filter_devices(const std::vector<sys::DeviceMatch>& rules) const;
  // Delegates the cgroup to a user of the container, who may then create cgroups: for a container that mounts cgroup2 writable in
  // its own cgroup namespace. An id of ~0 is not changed.
  Result<void> give_to(uint32_t uid, uint32_t gid) const;

  // The cgroup in which to start another process of the container: `inside` of it ("": the container's own). A container that has
  // created cgroups itself (systemd) has no process at its top; then it is the cgroup of its first process `init`, as it is when
  // the container's cgroup was removed after its process had gone elsewhere. clone3 fails with EACCES for a user who does not own
  // the common ancestor (a login session and the user's own systemd): then use attach().
  // Errors: not_found; conflict if `init` is in a cgroup outside.
  Result<Fd> directory_for(const std::string& inside, int init) const;
  // Moves a running process to the cgroup of directory_for(); through systemd if the kernel denies the move.
  Result<void> attach(int pid, const std::string& inside, int init) const;

  Result<void> freeze(std::chrono::milliseconds timeout) const;
  Result<void> thaw(std::chrono::milliseconds timeout) const;
  Result<bool> is_frozen() const;
  Result<void> kill() const;  // SIGKILL to all processes in it and its descendants
  Result<std::vector<int>> pids() const;
  Result<Stats> stats() const;
  Result<Watch> watch() const;

  // Waits until the cgroup is empty, then removes it with its descendants and its scope. It is no error if nothing is there.
  // Errors: timeout.
  Result<void> remove(std::chrono::milliseconds timeout);

 private:
  Result<void> make_directory(const Caller& caller, const Place& place, const std::vector<Setting>& limits,
                              Unenforceable unenforceable, int pid);
  Result<void> make_directory_at(const std::string& path, const std::string* cleared, const std::vector<Setting>& limits,
                                 Unenforceable unenforceable, int pid);
  Result<void> make_scope(const Place& place, const Wanted& wanted, const std::vector<Setting>& limits, int pid);
  Result<void> make_counterparts(const std::vector<V1Hierarchy>& hierarchies, const std::vector<V1Setting>& limits, int pid);
  Result<void> remove_directory(bool must_be_plain) const;
  Result<void> check_exists() const;

  Record record_;
  bool is_privileged_ = true;
  std::string mount_point_;
  Fd directory_;
  bool has_v1_ = false;
  std::vector<V1Hierarchy> hierarchies_;  // as make() found them; find() leaves them to who needs them
  std::vector<std::string> held_by_v1_;
  std::vector<std::string> warnings_;
};

}  // namespace coracle::cgroup

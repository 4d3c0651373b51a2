// SPDX-License-Identifier: Apache-2.0
// A container's own cgroup, for the OCI command line: made by one of three managers, found again by what was recorded,
// limited, frozen, killed, watched and removed.
//
//   cgroupfs   make(…, 0) ─▶ limits stand ─▶ the process is born in directory() (CLONE_INTO_CGROUP)
//   systemd    the process is there and waits ─▶ make(…, pid): systemd makes a scope around it, it moves to "container" inside,
//              limits stand
//   both       where cgroup v1 holds controllers, root's containers have counterparts there (v1.h); a process is moved to them by
//              join_v1() before it does anything. Not under systemd, which keeps v1 by itself.
//   disabled   make() succeeds, exists() is false, what needs a cgroup is `unsupported`, limits are warnings
//
// systemd keeps the scope's own files (MemoryMax, CPUWeight, …) as it was told, also after a reload, so it is told all it
// has words for; the rest is written beside it, as Delegate=yes allows. The device filter is ours under every manager.
#pragma once

#include <chrono>
#include <map>
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

// Who asks. Read once by self(), given as a value so that all else can be tried.
struct Caller {
  // Root of the machine's own user namespace. Others have the user's own systemd, and only what was delegated to them.
  bool is_privileged = true;
  std::string mount_point;              // "/sys/fs/cgroup"
  std::string own_path;                 // "/user.slice/user-1000.slice/…"
  std::vector<std::string> held_by_v1;  // controllers that cgroup v2 cannot have here, as it names them
  static Result<Caller> self();         // Errors: unsupported, there is no cgroup v2
};

struct Wanted {
  Manager manager = Manager::cgroupfs;
  std::string id;
  std::string cgroups_path;  // linux.cgroupsPath
  oci::Resources resources;
  std::string oci_version;                         // what they mean depends on it: of_version()
  std::map<std::string, std::string> annotations;  // "org.systemd.property.…" are properties of the scope
  Unenforceable unenforceable = Unenforceable::warn_on_v1;
};

// What a later call needs to find it again; kept in the container's state.
struct Record {
  Manager manager = Manager::disabled;
  std::string path;      // beneath the mount point; "" = none
  std::string unit;      // systemd: the scope
  bool is_user = false;  // … of the user's own systemd
};

class Container {
 public:
  Container() = default;  // of no cgroup
  // True when make() needs the process: systemd makes no scope without one.
  static bool needs_process(Manager manager) { return manager == Manager::systemd; }
  // Makes it and sets its limits; with `pid`, the process stands in it afterwards. On failure nothing stays, and a process
  // that systemd was given is killed with its scope. An
  // unprivileged caller to whom nothing was delegated gets none, unless limits or a path were asked for.
  // Errors: conflict, processes are in it already; invalid and unsupported with the field of config.json; forbidden.
  static Result<Container> make(const Caller& caller, const Wanted& wanted, int pid);
  // By what was recorded. One that is gone meanwhile does not exist(); remove() still ends its scope.
  static Result<Container> find(const Caller& caller, const Record& record);

  bool exists() const { return bool(directory_); }
  const Fd& directory() const { return directory_; }
  const Record& record() const { return record_; }
  std::string host_path() const { return mount_point_ + record_.path; }  // "/sys/fs/cgroup/a/b"
  // Whether processes that are born in directory() have to be moved to counterparts in cgroup v1 as well.
  bool has_v1() const { return !v1_.is_empty(); }
  Result<void> join_v1(int pid) const { return v1_.put_in(pid); }
  // What make() and update() left out, a sentence each; for the log.
  const std::vector<std::string>& warnings() const { return warnings_; }

  // Sets what `resources` name, and leaves the rest. Without a limit in `resources`, memory.swap is not known; a caller
  // hands over those of before with the changes in them.
  Result<void> update(const oci::Resources& resources, Unenforceable unenforceable, const std::string& oci_version = "");
  // The last rule that matches decides. Takes the place of the one that was there at once; what others have attached
  // stays. An unprivileged caller cannot, and need not: it gets no device that it could not open before.
  Result<void> filter_devices(const std::vector<sys::DeviceMatch>& rules) const;
  // To a user inside, who may then make cgroups: where the container mounts cgroup2 writable in a namespace of its own.
  Result<void> give_to(uint32_t uid, uint32_t gid) const;

  // Where another process of the container is to be born: `inside` of it ("" = itself). A container that has made
  // cgroups of its own (systemd) holds no process at its top: then where its first process `init` stands. clone3
  // says EACCES to a user who does not own what both stand in (a login and the user's own systemd): then attach().
  // Errors: not_found; conflict, `init` stands elsewhere.
  Result<Fd> directory_for(const std::string& inside, int init) const;
  // Moves a process that is there to where directory_for() says, by systemd where the kernel does not let us.
  Result<void> attach(int pid, const std::string& inside, int init) const;

  Result<void> freeze(std::chrono::milliseconds patience) const;
  Result<void> thaw(std::chrono::milliseconds patience) const;
  Result<bool> is_frozen() const;
  Result<void> kill() const;  // SIGKILL to all in it and beneath
  Result<std::vector<int>> pids() const;
  Result<Stats> stats() const;
  Result<Watch> watch() const;

  // Waits until no process is in it, then removes it with what was made inside, and the scope with it. Nothing there is
  // success. Errors: timeout.
  Result<void> remove(std::chrono::milliseconds patience);

 private:
  Result<void> make_directory(const Caller& caller, const Place& place, const std::vector<Setting>& limits,
                              Unenforceable unenforceable, int pid);
  Result<void> make_directory_at(const std::string& path, const std::string* cleared, const std::vector<Setting>& limits,
                                 Unenforceable unenforceable, int pid);
  Result<void> make_scope(const Place& place, const Wanted& wanted, const std::vector<Setting>& limits, int pid);
  Result<void> make_counterparts(const std::vector<V1Setting>& limits, int pid);
  Result<void> remove_directory(bool must_be_plain) const;
  Result<void> check_exists() const;

  Record record_;
  bool is_privileged_ = true;
  std::string mount_point_;
  Fd directory_;
  V1Cgroup v1_;
  std::vector<std::string> held_by_v1_;  // as far as counterparts hold it
  std::vector<std::string> warnings_;
};

}  // namespace coracle::cgroup

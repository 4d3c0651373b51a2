// SPDX-License-Identifier: Apache-2.0
// The state of each container between two commands: a directory below the root, created by create and removed by delete. It
// contains what cannot be read from the kernel; whether the container runs is read from the kernel.
//
//   <root>/<id>/state.json   written once the process exists; replaced by update
//              /start.sock   while the container waits for start
//              /lock         locked by a command that changes the container
// Source: runtime-spec runtime.md "State", "Lifecycle".
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/json.h"
#include "runtime/base/result.h"
#include "runtime/cgroup/container.h"
#include "runtime/oci/spec.h"

namespace coracle::cli {

enum class Status { creating, created, running, paused, stopped };
const char* name_of(Status status);

struct Saved {
  std::string id, bundle, rootfs, version;
  int pid = 0;
  uint64_t pid_started = 0;  // in clock ticks since boot, from /proc/PID/stat: detects a reused pid
  std::string boot_id;
  WallTime created;
  uint32_t owner = 0;  // uid
  std::map<std::string, std::string> annotations;
  cgroup::Record cgroup;
  oci::Resources resources;  // in force
  oci::Process process;      // defaults for exec
  std::string seccomp_name;  // "": unconfined
  std::optional<oci::Personality> personality;
  std::optional<oci::MemoryPolicy> memory_policy;
  oci::Hooks hooks;                                                                       // poststart, poststop
  bool has_user_namespace = false, has_pid_namespace = true, has_mount_namespace = true;  // the container's own
  bool keeps_keyring = false;  // its processes have the session keyring of who starts them
};

constexpr const char* kStartSocket = "start.sock";
// Annotations, with crun's names: processes keep the supplementary groups of the caller (podman's --group-add keep-groups); a
// system call that the profile names and libseccomp does not know is an error; as --pidfd-socket, which comes first.
constexpr const char* kKeepGroups = "run.oci.keep_original_groups";
constexpr const char* kFailUnknownCalls = "run.oci.seccomp_fail_unknown_syscall";
constexpr const char* kPidfdReceiver = "run.oci.pidfd_receiver";
std::string keyring_of(const std::string& id);  // the name of the session keyrings of a container's processes. Source: runc
bool is_valid_id(const std::string& id);        // [a-zA-Z0-9_+.-]{1,255}, neither "." nor ".."

// A container whose process is there.
struct Alive {
  Status status = Status::running;
  Fd process;                // a pidfd
  cgroup::Container cgroup;  // of no cgroup, when it has none
};

class Container {
 public:
  const Saved& saved() const { return saved_; }
  Saved& saved() { return saved_; }
  const Fd& directory() const { return directory_; }
  Result<void> save() const;
  // The first process, if it is still running.
  Result<Fd> pidfd() const;  // Errors: not_found if it has ended
  Result<Status> status() const;
  // What status() looks at, looked at once. Errors: conflict, its process is not there.
  Result<Alive> alive() const;
  // The state in the specification's format. `status` is given by the caller, because hooks receive the status to come.
  json::object state(Status status) const;
  Result<cgroup::Container> find_cgroup() const;
  void unlock() { lock_.reset(); }  // releases the lock, so that others can change a container that runs in the foreground

 private:
  friend class Containers;
  Result<bool> is_held() const;
  Saved saved_;
  Fd directory_, lock_;
};

class Containers {
 public:
  // `root` "": /run/coracle-oci for root in the initial user namespace, otherwise coracle-oci in XDG_RUNTIME_DIR. One that does
  // not exist holds no containers. Errors: with the path.
  static Result<Containers> open(const std::string& root);
  // Makes the root first, if it does not exist.
  static Result<Containers> open_to_create(const std::string& root);
  const std::string& path() const { return path_; }
  // Creates the container's directory, empty except for the lock. Errors: already_exists, invalid (id).
  Result<Container> create(const std::string& id) const;
  // For reading. Errors: not_found.
  Result<Container> find(const std::string& id) const;
  // For changing: waits while another command holds the lock.
  Result<Container> find_to_change(const std::string& id) const;
  // Errors: not_found if a root other than the default does not exist: its name may be mistyped.
  Result<std::vector<std::string>> list() const;
  Result<void> remove(const std::string& id) const;

 private:
  std::string path_;
  bool is_default_ = false;
  Fd root_;  // none: it does not exist
};

struct ProcessStat {       // from /proc/PID/stat
  uint64_t started = 0;    // clock ticks since boot
  bool has_ended = false;  // a zombie
};
Result<ProcessStat> process_stat(int pid);  // Errors: not_found

}  // namespace coracle::cli

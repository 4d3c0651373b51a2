// SPDX-License-Identifier: Apache-2.0
// What is known of each container between two commands: a directory of its own beneath the root, made by create, gone
// with delete. It holds what cannot be found again in the kernel; whether the container runs is asked there.
//
//   <root>/<id>/state.json   written once, when there is a process; replaced by update
//              /start.sock   as long as the container waits to be started
//              /lock         held by who changes something
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
  uint64_t pid_started = 0;  // in clock ticks since boot, /proc/PID/stat: another process of this number has another
  std::string boot_id;
  WallTime created;
  uint32_t owner = 0;  // uid
  std::map<std::string, std::string> annotations;
  cgroup::Record cgroup;
  oci::Resources resources;  // as they are in force
  oci::Process process;      // what an exec inherits
  std::string seccomp_name;  // "" = unconfined
  std::optional<oci::Personality> personality;
  std::optional<oci::MemoryPolicy> memory_policy;
  oci::Hooks hooks;                                                                       // poststart, poststop
  bool has_user_namespace = false, has_pid_namespace = true, has_mount_namespace = true;  // of its own
};

constexpr const char* kStartSocket = "start.sock";
// Annotation: processes keep the supplementary groups of who starts them. crun's name; podman's --group-add keep-groups sets it.
constexpr const char* kKeepGroups = "run.oci.keep_original_groups";
bool is_valid_id(const std::string& id);  // [a-zA-Z0-9_+.-]{1,255}, neither "." nor ".."

class Container {
 public:
  const Saved& saved() const { return saved_; }
  Saved& saved() { return saved_; }
  const Fd& directory() const { return directory_; }
  Result<void> save() const;
  // Its first process, when that is still there.
  Result<Fd> pidfd() const;  // Errors: not_found, when it has ended
  Result<Status> status() const;
  // The state as the specification has it. Status as given: hooks are told what will be.
  json::object state(Status status) const;
  Result<cgroup::Container> find_cgroup() const;
  void unlock() { lock_.reset(); }  // others may change it: a container that runs in the foreground does so for long

 private:
  friend class Containers;
  Saved saved_;
  Fd directory_, lock_;
};

class Containers {
 public:
  // `root`: "" = /run/coracle-oci for the machine's root, else coracle-oci in XDG_RUNTIME_DIR. Errors: with the path.
  static Result<Containers> open(const std::string& root);
  const std::string& path() const { return path_; }
  // Makes the directory; empty but for that. Errors: already_exists, invalid (id).
  Result<Container> create(const std::string& id) const;
  // To look at. Errors: not_found.
  Result<Container> find(const std::string& id) const;
  // To change: waits while another command does.
  Result<Container> find_to_change(const std::string& id) const;
  Result<std::vector<std::string>> list() const;
  Result<void> remove(const std::string& id) const;

 private:
  std::string path_;
  Fd root_;
};

struct ProcessFacts {      // by /proc/PID/stat
  uint64_t started = 0;    // clock ticks since boot
  bool has_ended = false;  // and was not reaped yet
};
Result<ProcessFacts> facts_of_process(int pid);  // Errors: not_found

}  // namespace coracle::cli

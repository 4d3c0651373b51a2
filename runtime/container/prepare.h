// SPDX-License-Identifier: Apache-2.0
// Preparing: opens what the planned steps need (detached mounts, the cgroup, the compiled filter) and writes the steps into one
// flat plan in the layout of launch/flat_plan.h. After this, of the host's paths only those of the container's own cgroups (v1)
// and of masks and devices are resolved.
//   oci::Spec + properties ─▶ plan.h ─▶ Prepared { plan memfd, descriptors in order } ─▶ coracle-pause, or direct_launch.h
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/container/plan.h"
#include "runtime/container/seccomp_program.h"
#include "runtime/sys/namespaces.h"

namespace coracle::runtime {

Result<LauncherInfo> launcher_info();  // of this process. Errors: the kernel's, also when reading /proc

// The plan and the descriptors of a launch. in_order() adds the descriptors that precede them.
struct Prepared {
  Fd plan;
  std::vector<Fd> fds;              // numbered from launch::kFdMore
  uint32_t request_flags = 0;       // for coracle-pause
  uint64_t clone_flags = 0;         // for a caller that clones: the new namespaces, and
  Fd pid_namespace;                 // the pid namespace to start in
  bool has_reports = false;         // before it executes its program, the child reports more than a failure
  std::vector<std::string> mounts;  // destinations, for error messages
  std::vector<int> in_order(const Fd* cgroup, const Fd* const streams[3], const Fd* log_directory) const;
};

// A user namespace and the namespaces that it owns. It is created before the plan, whose ids it translates.
struct UserNamespace {
  sys::OwnedNamespaces owned;
  IdMaps ids;
};
// Prepares the user namespace that linux.namespaces requests; nothing if the container uses the launcher's. Errors: with the
// field.
Result<std::optional<UserNamespace>> prepare_user_namespace(const oci::Spec& spec, const NamespacePlan& namespaces);

std::vector<sys::IdRange> id_ranges(const std::vector<oci::IdMapping>& maps);
// The user namespace of a running process. Errors: not_found.
Result<UserNamespace> user_namespace_of(const Fd& pidfd);

struct PrepareInput {
  const oci::Spec* spec = nullptr;
  SandboxInfo sandbox;
  LauncherInfo own;
  SeccompPtr seccomp;                                 // null: unconfined
  bool hold = false;                                  // holds the process before exec until somebody connects to the start socket
  const UserNamespace* user = nullptr;                // null: the launcher's
  std::string keyring;                                // creates a session keyring of this name; "": the launcher's
  uint32_t kept_fds = 0;                              // number of descriptors from 3 on that stay open
  const Fd* target = nullptr;                         // exec by the OCI command line: pidfd of the container's process
  bool pivots = true;                                 // false: chroot instead of pivot_root, for a root on an initramfs
  bool waits = false;                                 // for kGo, before it does anything else
  std::string create_state, start_state, state_tail;  // for hooks: the container's state in JSON before and after its pid
  std::string root_path, bundle;                      // of a bundle: its root, and the directory of createContainer hooks
  bool keeps_groups = false;                          // the process keeps the launcher's supplementary groups
  std::vector<Fd>* v1_tasks = nullptr;                // the files `tasks` of the cgroups of v1 that it joins first; moved from
};

// `root`: the root file system as a detached mount; none if a mount namespace is joined. Errors: invalid, unsupported, not_found,
// with the mount.
Result<Prepared> prepare_container(const PrepareInput& input, Fd root);
// Another process in a running container: `spec` is the container's, `process` the one to run. `user` is set if the container has
// a user namespace of its own.
Result<Prepared> prepare_exec(const PrepareInput& input, const oci::Process& process);

// A bundle's root directory as a detached mount, or unchanged for a container without a mount namespace. `propagation`: that of
// linux.rootfsPropagation; as a slave it gets what is mounted beneath the directory later. Errors: not_found.
Result<Fd> open_root(const std::string& path, bool in_host_tree = false, const std::string& propagation = "");

}  // namespace coracle::runtime

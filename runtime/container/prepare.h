// SPDX-License-Identifier: Apache-2.0
// Preparing: the planned steps get their descriptors (detached mounts, cgroup, the compiled filter) and are written
// into one flat plan, as launch/flat_plan.h lays it out. From here on nothing is looked up by a path of the host's.
//   oci::Spec + facts ─▶ plan.h ─▶ Prepared { plan memfd, descriptors in order } ─▶ coracle-pause, or direct_launch.h
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/container/plan.h"
#include "runtime/container/seccomp_program.h"
#include "runtime/sys/namespaces.h"

namespace coracle::runtime {

Result<OwnFacts> own_facts();  // of this process. Errors: what /proc and the kernel said

// A launch's plan and descriptors, complete but for those that stand in front: see in_order().
struct Prepared {
  Fd plan;
  std::vector<Fd> fds;              // stand from launch::kFdMore on
  uint32_t request_flags = 0;       // for coracle-pause
  uint64_t clone_flags = 0;         // for who clones by itself: the new namespaces, and
  Fd pid_namespace;                 // the one to be born in
  std::vector<std::string> mounts;  // destinations, for messages
  std::vector<int> in_order(const Fd* cgroup, const Fd* const streams[3], const Fd* log_directory) const;
};

// A user namespace and what belongs to it. It is there before the plan, whose ids are translated by it.
struct UserNamespace {
  sys::OwnedNamespaces owned;
  IdMaps ids;
};
// What linux.namespaces says of one; nothing when the container is to be in the launcher's own. Errors: with the field.
Result<std::optional<UserNamespace>> prepare_user_namespace(const oci::Spec& spec, const NamespacePlan& namespaces);

std::vector<sys::IdRange> id_ranges(const std::vector<oci::IdMapping>& maps);
// That of a process that runs. Errors: not_found.
Result<UserNamespace> user_namespace_of(const Fd& pidfd);

struct PrepareInput {
  const oci::Spec* spec = nullptr;
  SandboxFacts sandbox;
  OwnFacts own;
  SeccompPtr seccomp;                                 // null = unconfined
  bool hold = false;                                  // before exec, until somebody comes to the start socket
  const UserNamespace* user = nullptr;                // null = the launcher's
  std::string keyring;                                // a new session keyring of this name; "" = the launcher's
  uint32_t kept_fds = 0;                              // so many from 3 on stay open
  const Fd* target = nullptr;                         // exec, of our own: pidfd of the container's process
  bool pivots = true;                                 // false: chroot, for a root in an initramfs
  bool waits = false;                                 // for Go, before it does anything
  std::string create_state, start_state, state_tail;  // for hooks: the container's state before its pid, and after
  std::string root_path, bundle;                      // of a bundle: where its root is, and where createContainer hooks begin
  bool keeps_groups = false;                          // the launcher's supplementary groups stay the process's
};

// `root`: the root file system as a detached mount; none where a mount namespace is joined. Errors: invalid, unsupported,
// not_found with the mount named.
Result<Prepared> prepare_container(const PrepareInput& input, Fd root);
// A process beside a container's own: `spec` is the container's, `process` what to run. With `user`, the container has a
// user namespace of its own.
Result<Prepared> prepare_exec(const PrepareInput& input, const oci::Process& process);

// A bundle's root directory as a detached mount; or as it is, for a container without a mount namespace. Errors: not_found.
Result<Fd> open_root(const std::string& path, bool in_host_tree = false);

}  // namespace coracle::runtime

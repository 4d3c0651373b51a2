// SPDX-License-Identifier: Apache-2.0
// Preparing: the planned steps get their descriptors (detached mounts, cgroup, the compiled filter) and are written
// into one flat plan, as pause/protocol.h lays it out. From here on nothing is looked up by a path of the host's.
//   oci::Spec + facts ─▶ plan.h ─▶ Prepared { plan memfd, descriptors in order } ─▶ pause
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/container/plan.h"
#include "runtime/container/seccomp_program.h"

namespace coracle::runtime {

// A request's plan and descriptors, complete but for those that the request itself puts in front.
struct Prepared {
  Fd plan;
  std::vector<Fd> fds;  // stand from launch::kFdMore on
  uint32_t request_flags = 0;
  std::vector<std::string> mounts;  // destinations, for messages
};

struct PrepareInput {
  const oci::Spec* spec = nullptr;
  SandboxFacts sandbox;
  OwnFacts own;
  SeccompPtr seccomp;  // null = unconfined
  bool hold = false;   // stop before exec
};

// `root`: the root file system as a detached mount. Errors: invalid, unsupported, not_found with the mount named.
Result<Prepared> prepare_container(const PrepareInput& input, Fd root);
// A process beside a container's own: `spec` is the container's, `process` what to run.
Result<Prepared> prepare_exec(const PrepareInput& input, const oci::Process& process);

// A bundle's root directory as a detached mount. Errors: not_found.
Result<Fd> open_root(const std::string& path);

}  // namespace coracle::runtime

// SPDX-License-Identifier: Apache-2.0
// Planning, pure: a specification and what is known of its sandbox become the steps that the child will take. Nothing
// is opened here; prepare.h turns sources into descriptors and the steps into the flat plan. Source: runtime-spec
// config.md "Mounts", config-linux.md; mount(8) for the options' names.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"
#include "runtime/oci/spec.h"
#include "runtime/pause/protocol.h"
#include "runtime/sys/bpf.h"
#include "runtime/sys/mount.h"

namespace coracle::runtime {

// What a plan depends on beside the specification.
struct SandboxFacts {
  bool has_network = true, has_ipc = true, has_uts = true;  // namespaces of the sandbox's own; false: the host's
  bool host_pid = false, shared_pid = false;
};
struct OwnFacts {  // of the process that launches
  uint64_t capabilities = ~uint64_t(0);
  int oom_score_adj = 0;
};
constexpr int kCapSysResource = 24;

// Options of one mount, sorted by what they mean.
struct MountOptions {
  bool is_bind = false, is_recursive = false;
  uint64_t set = 0, clear = 0;                      // MOUNT_ATTR_* of the mount itself
  uint64_t set_recursive = 0, clear_recursive = 0;  // of those beneath it too ("rro")
  uint64_t propagation = 0;                         // MS_SHARED, ... possibly with MS_REC
  std::vector<sys::FsOption> data;                  // the file system's own
};
// Errors: unsupported, with the option.
Result<MountOptions> parse_mount_options(const oci::Mount& mount);

struct MountDraft {
  launch::MountKind kind = launch::MountKind::file_system;
  uint32_t flags = 0;
  std::string destination, type;
  std::string source;                   // attach: host path,
  std::shared_ptr<const Fd> source_fd;  // or this
  MountOptions options;
};
Result<std::vector<MountDraft>> plan_mounts(const oci::Spec& spec, const SandboxFacts& sandbox);

// Every container's devices, then those of the spec.
std::vector<oci::Device> plan_devices(const oci::Spec& spec);
std::vector<sys::DeviceMatch> plan_device_rules(const oci::Spec& spec);
// {target, path}
std::vector<std::pair<std::string, std::string>> plan_links(const oci::Spec& spec);

// Where execve will look: the program itself when it holds a slash, else PATH of `env` entry by entry.
std::vector<std::string> plan_programs(const std::string& program, const std::vector<std::string>& env);

struct CapabilitySets {
  uint64_t bounding = 0, effective = 0, permitted = 0, inheritable = 0, ambient = 0;
};
// What `own` lacks is left out: nobody can give what it has not.
Result<CapabilitySets> plan_capabilities(const oci::Capabilities& wanted, const OwnFacts& own);
// Lower than our own needs CAP_SYS_RESOURCE; without it our own is as low as it gets.
int plan_oom_score(int wanted, const OwnFacts& own);

// What a failed step means to the one who asked: "exec: \"nginx\": executable file not found in $PATH".
Error explain_failure(const pause::Reply& reply, const oci::Spec& spec, const std::vector<std::string>& mounts);

}  // namespace coracle::runtime

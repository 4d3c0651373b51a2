// SPDX-License-Identifier: Apache-2.0
// From a Kubernetes container to what the runtime starts, pure: everything that needs the machine (image, user names,
// environment's references, volumes) was resolved before and comes in as values.
//   pod + container + ContainerInputs ──make_container_spec──▶ runtime::ContainerSpec
// Source: Kubernetes core/v1 Container, SecurityContext, pod security standards; OCI runtime-spec config.md.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/node/pod.h"
#include "runtime/runtime.h"

namespace coracle::node {

struct VolumeMount {
  std::string destination;           // clean, from the container's root
  std::shared_ptr<const Fd> source;  // what is bound, subPath included
  bool read_only = false, recursive_read_only = false;
  std::string propagation;    // "", "None", "HostToContainer", "Bidirectional"
  std::string name;           // the volume's
  bool id_mapped = false;     // shown with its owners as the pod's own users
  bool made_by_node = false;  // a whole volume whose directory is the node's: places for other mounts may be made in it
  std::vector<std::string> options = {};  // of the volume, as OCI names them
};

struct VolumeDevice {  // a block volume, as the container sees it
  oci::Device device;
  bool read_only = false;
};

struct ManagedFile {  // a file of ours shown in the container unless one of its own mounts is there
  std::string destination, source;
};

struct ContainerInputs {
  runtime::Image image;
  oci::User user;  // as resolve_user answered for user_of()
  std::map<std::string, std::string> environment;
  std::vector<VolumeMount> volumes;
  std::vector<ManagedFile> files;
  std::vector<oci::Device> host_devices;     // for privileged containers
  std::vector<VolumeDevice> devices;         // block volumes
  std::optional<json::value> local_seccomp;  // the profile that a Localhost seccompProfile names
  std::string apparmor_profile;              // "" = none
  std::string target_id;                     // the runtime's, of a container whose processes it is to see; "" = its own
  runtime::Enforcement enforcement;
  Bytes machine_memory;
  bool seccomp_default = true;
  std::string shared_memory_dir;  // "" = /dev/shm of its own
  std::string host_name;
  int attempt = 0;
  std::string log_path;
};

// A path as a container sees it: from its root, without ".", ".." and what is written twice. "data/" → "/data".
std::string container_path(std::string_view path);
// Where a container sees the files that the node writes for it: hosts, resolv.conf, hostname and its termination message.
std::array<std::string, 4> managed_places(const json::value& container);

// The user to be resolved in the image: runAsUser of the container, else of the pod, else the image's own.
std::string user_of(const json::value& pod, const json::value& container, const runtime::ImageConfig& image);
// A field of the container's securityContext, else of the pod's; nullptr when neither says it.
const json::value* security_field(const json::value& pod, const json::value& container, std::string_view field);
bool is_privileged(const json::value& container);
// The Localhost profile's name relative to the seccomp directory, "" when none is asked for.
std::string seccomp_profile_name(const json::value& pod, const json::value& container);

// Errors: invalid, worded for CreateContainerConfigError.
Result<runtime::ContainerSpec> make_container_spec(const json::value& pod, const json::value& container,
                                                   const ContainerInputs& inputs);

// SIGTERM unless the container (lifecycle.stopSignal) or its image says otherwise.
std::string stop_signal_of(const json::value& container, const runtime::ImageConfig& image);

// The sandbox of the pod.
runtime::SandboxSpec make_sandbox_spec(const json::value& pod, std::string_view uid, std::string metadata,
                                       std::string_view cluster_domain, int64_t pids_max);

}  // namespace coracle::node

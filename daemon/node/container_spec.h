// SPDX-License-Identifier: Apache-2.0
// Translates a Kubernetes container into the runtime's ContainerSpec. Pure: everything that depends on the machine (image, user
// names, references in the environment, volumes) is resolved before and passed as values.
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
  std::string destination;           // normalized, relative to the container's root
  std::shared_ptr<const Fd> source;  // the source of the bind mount, subPath included
  bool read_only = false, recursive_read_only = false;
  std::string propagation;    // "", "None", "HostToContainer", "Bidirectional"
  std::string name;           // name of the volume
  bool id_mapped = false;     // an id-mapped mount: owners are mapped to the pod's user namespace
  bool made_by_node = false;  // a whole volume in a directory of the node: mount points for other mounts may be created in it
  std::vector<std::string> options = {};  // mount options of the volume, as OCI names them
};

struct VolumeDevice {  // a block volume, as the container sees it
  oci::Device device;
  bool read_only = false;
};

struct ManagedFile {  // a file that the node writes; mounted unless the container mounts something at that place
  std::string destination, source;
};

struct ContainerInputs {
  runtime::Image image;
  oci::User user;  // the result of resolve_user for user_of()
  std::map<std::string, std::string> environment;
  std::vector<VolumeMount> volumes;
  std::vector<ManagedFile> files;
  std::vector<oci::Device> host_devices;     // for privileged containers
  std::vector<VolumeDevice> devices;         // block volumes
  std::optional<json::value> local_seccomp;  // the profile named by a Localhost seccompProfile
  std::string apparmor_profile;              // "": none
  std::string target_id;                     // container id of the container whose PID namespace it joins; "": its own namespace
  runtime::Enforcement enforcement;
  Bytes machine_memory;
  bool seccomp_default = true;
  std::string shared_memory_dir;  // "": the container has its own /dev/shm
  std::string host_name;
  int attempt = 0;
  std::string log_path;
};

// Normalizes a path in a container: relative to its root, without ".", ".." and repeated slashes. "data/" → "/data".
std::string container_path(std::string_view path);
// The paths in the container of the files that the node writes: hosts, resolv.conf, hostname and the termination message.
std::array<std::string, 4> managed_places(const json::value& container);

// The user to resolve in the image: the container's runAsUser, else the pod's, else the image's.
std::string user_of(const json::value& pod, const json::value& container, const runtime::ImageConfig& image);
// The runAsUser of the container's securityContext, else of the pod's; nullopt if neither sets it.
std::optional<int64_t> run_as_user(const json::value& pod, const json::value& container);
bool is_privileged(const json::value& container);
// The name of a Localhost seccomp profile, relative to the seccomp directory; "" if none is requested.
std::string seccomp_profile_name(const json::value& pod, const json::value& container);

// Errors: invalid, with the message of a CreateContainerConfigError.
Result<runtime::ContainerSpec> make_container_spec(const json::value& pod, const json::value& container,
                                                   const ContainerInputs& inputs);

// The stop signal: the container's lifecycle.stopSignal, else the image's, else SIGTERM.
std::string stop_signal_of(const json::value& container, const runtime::ImageConfig& image);

// The runtime's spec of the pod's sandbox.
runtime::SandboxSpec make_sandbox_spec(const json::value& pod, std::string_view uid, std::string metadata,
                                       std::string_view cluster_domain, int64_t pids_max);

}  // namespace coracle::node

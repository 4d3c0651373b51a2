// SPDX-License-Identifier: Apache-2.0
// One volume of a pod: its source, what can be asked of it, and what may go wrong with it. Pure.
//   pod + volume + claims ──source_of──▶ PodVolume     Error + PodVolume ──VolumeFailures──▶ MountFailure, for an event
// Source: Kubernetes core/v1 Volume, PersistentVolume; kubelet's volume errors (texts).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/node/config.h"
#include "daemon/node/pod.h"
#include "store/schema/views.h"

namespace coracle::node {

// The source of a pod's volume: in the pod, or in the PersistentVolume of its claim. Both name their kind by a field.
struct PodVolume {
  std::string_view name;  // the pod's for it
  const json::value* spec = nullptr;
  volume::Backing backing;  // empty without a claim
};

Result<PodVolume> source_of(const json::value& pod, const json::value& volume, const volume::StorageObjects& storage);

std::optional<uint32_t> fs_group(const json::value& pod);

// Of a volume of the pod, or of the spec of a PersistentVolume.
bool is_block(const json::value& volume);
bool is_local(const json::value& volume);
bool is_nfs(const json::value& volume);
bool is_tmpfs(const json::value& volume);
bool is_huge_pages(const json::value& volume);
bool is_in_memory(const json::value& volume);         // one of the two: owned by the pod's own users, if it has a user namespace
constexpr std::string_view kHugePages = "HugePages";  // the medium, or with a size: "HugePages-2Mi"
// The fields that only the spec of a PersistentVolume has: a volume of the pod has none of them.
view::PersistentVolumeSpec of_claim(const json::value& volume);
// The place that a volume names; "" if it has none on the host.
std::string place_on_host(const json::value& volume, const std::string& host_root);

bool is_for_one_pod(const PodVolume& source);  // by its claim, whose only access mode is ReadWriteOncePod
// A pod that names its node is asked by no scheduler: at a local volume's path there may be another volume on this node.
bool is_elsewhere(const PodVolume& source, const std::function<ObjectPtr()>& this_node);

// Those of a PersistentVolume.
std::vector<std::string> mount_options(const PodVolume& source);
// Those of a PersistentVolume that is a directory, as far as they apply to a bind mount. Errors: unsupported.
Result<std::vector<std::string>> directory_options(const PodVolume& source);
NfsShare nfs_share(const PodVolume& source);

// The names of the volumes that containers have.
struct VolumesInContainers {
  std::set<std::string_view> mounted, devices, read;
  explicit VolumesInContainers(const json::value& pod) {
    auto add = [&](const ContainerRef& container) {
      view::Container spec(*container.spec);
      for (view::VolumeMount mount : spec.volume_mounts()) mounted.insert(mount.name());
      for (view::VolumeDevice device : spec.volume_devices()) devices.insert(device.name());
      for (view::EnvVar variable : spec.env()) read.insert(variable.value_from().file_key_ref().volume_name());
    };
    for (const auto& container : containers_of(pod)) add(container);
    for (const auto& container : ephemeral_of(pod)) add(container);
  }
  bool contain(std::string_view name) const { return mounted.contains(name) || devices.contains(name) || read.contains(name); }
  std::vector<view::Volume> those_of(const json::value& pod) const {
    std::vector<view::Volume> volumes;
    for (view::Volume volume : view::Pod(pod).spec().volumes())
      if (contain(volume.name())) volumes.push_back(volume);
    return volumes;
  }
};

// Whether an ephemeral container mounts a volume that none of the other containers does: it was not made with theirs.
bool mounts_alone(const json::value& pod, const ContainerRef& ephemeral);
// Whether containers use the volume as what it is, a file system or a device. Errors: invalid.
Result<void> check_mode(const PodVolume& source, const VolumesInContainers& there);

struct MountFailure {
  const char* reason;  // of the event that tells it: FailedMount, FailedMapVolume
  std::string text;    // as kubelet words it, with the claim's name
};

constexpr std::string_view kSetUp = "SetUp failed";
constexpr std::string_view kBegin = "NewMounter initialization failed";
constexpr std::string_view kOptions = "MountOptionSupport check failed";
constexpr std::string_view kAffinity = "NodeAffinity check failed";
// What did not work (one of those above), and with what: a claim's volume has the name of its PersistentVolume here.
std::string about(std::string_view what, const PodVolume& source);
Error no_such_kind(const PodVolume& source);  // why the node does not support the volume

// What went wrong with the volumes of one pod.
class VolumeFailures {
 public:
  // It is not known yet what the volume is.
  void add_unknown(std::string_view name, const Error& error);
  void add(const PodVolume& source, const Error& error);
  // Nothing went wrong yet: it takes long.
  void tell(const char* reason, std::string text) { found_.push_back({reason, std::move(text)}); }
  bool is_empty() const { return unmounted_.empty(); }
  // Source: kubelet, WaitForAttachAndMount (text).
  std::vector<MountFailure> take();

 private:
  std::set<std::string> unmounted_, unknown_;
  std::vector<std::string> why_;
  std::vector<MountFailure> found_;
};

}  // namespace coracle::node

// SPDX-License-Identifier: Apache-2.0
// See pod_volume.h.
#include "daemon/node/volume/pod_volume.h"

#include <algorithm>

#include "daemon/placement/placement.h"
#include "runtime/base/text.h"
#include "store/object/object.h"

namespace coracle::node {
namespace {

// The field of the source, such as "nfs": the one that is not another field of a Volume or of a PersistentVolume's spec.
std::string_view volume_source(const json::value& volume) {
  constexpr std::string_view kOthers[] = {"name",
                                          "capacity",
                                          "accessModes",
                                          "claimRef",
                                          "persistentVolumeReclaimPolicy",
                                          "storageClassName",
                                          "mountOptions",
                                          "volumeMode",
                                          "nodeAffinity",
                                          "volumeAttributesClassName"};
  if (const json::object* fields = volume.if_object())
    for (const auto& field : *fields)
      if (std::ranges::find(kOthers, std::string_view(field.key())) == std::end(kOthers)) return field.key();
  return {};
}

}  // namespace

std::optional<uint32_t> fs_group(const json::value& pod) {
  view::PodSecurityContext context = view::Pod(pod).spec().security_context();
  if (!context.has_fs_group()) return std::nullopt;
  return uint32_t(context.fs_group());
}

bool is_huge_pages(const json::value& volume) { return view::Volume(volume).empty_dir().medium().starts_with(kHugePages); }
bool is_tmpfs(const json::value& volume) { return view::Volume(volume).empty_dir().medium() == "Memory"; }
bool is_in_memory(const json::value& volume) { return is_tmpfs(volume) || is_huge_pages(volume); }

view::PersistentVolumeSpec of_claim(const json::value& volume) { return view::PersistentVolumeSpec(volume); }

std::string place_on_host(const json::value& volume, const std::string& host_root) {
  if (auto path = view::Volume(volume).host_path().path(); !path.empty()) return host_root + std::string(path);
  return std::string(of_claim(volume).local().path());
}

bool is_block(const json::value& volume) { return of_claim(volume).volume_mode() == "Block"; }
bool is_local(const json::value& volume) { return of_claim(volume).has_local(); }
bool is_nfs(const json::value& volume) { return view::Volume(volume).has_nfs(); }

// The annotation is older than the field, and counts instead of it. Source: kubelet, MountOptionsFromSpec.
std::vector<std::string> mount_options(const PodVolume& source) {
  std::vector<std::string> options;
  const std::string_view annotated =
      source.backing.volume ? source.backing.volume->annotation("volume.beta.kubernetes.io/mount-options") : std::string_view();
  for (std::string_view option : split(annotated, ','))
    if (!option.empty()) options.emplace_back(option);
  if (annotated.empty())
    for (std::string_view option : of_claim(*source.spec).mount_options()) options.emplace_back(option);
  return options;
}

// Options of a file system apply only to its own mount. Source: mount_setattr(2).
Result<std::vector<std::string>> directory_options(const PodVolume& source) {
  static const std::set<std::string_view> kOfMount = {"ro",          "rw",         "nosuid",  "suid",    "nodev",
                                                      "dev",         "noexec",     "exec",    "noatime", "relatime",
                                                      "strictatime", "nodiratime", "diratime"};
  std::vector<std::string> options;
  for (std::string& name : mount_options(source)) {
    if (name == "defaults") continue;
    if (!kOfMount.contains(name)) return Error(Code::unsupported, "a directory has no mount option " + quoted(name));
    options.push_back(std::move(name));
  }
  return options;
}

// A volume's mount options are those of its class, or set by the administrator who created it.
NfsShare nfs_share(const PodVolume& source) {
  view::NFSVolumeSource nfs = view::Volume(*source.spec).nfs();
  NfsShare share{std::string(nfs.server()), std::string(nfs.path()), {}};
  if (source.backing.read_only || nfs.read_only()) share.options.push_back("ro");
  for (std::string& option : mount_options(source)) share.options.push_back(std::move(option));
  return share;
}

Result<PodVolume> source_of(const json::value& pod, const json::value& volume, const volume::StorageObjects& storage) {
  std::string_view name = view::Volume(volume).name();
  if (volume::claim_name("", volume).empty()) return PodVolume{name, &volume, {}};
  if (!storage.claim) return Error(Code::unsupported, "this node has no volumes of claims");
  volume::Backing backing = TRY(volume::backing_of(pod, volume, storage));
  const json::value& spec = view::PersistentVolume(*backing.volume).spec().raw();
  return PodVolume{name, &spec, std::move(backing)};
}

// Source: kubelet's desired state of volumes (texts).
Result<void> check_mode(const PodVolume& source, const VolumesInContainers& there) {
  const bool block = is_block(*source.spec);
  if (!(block ? there.mounted : there.devices).contains(source.name)) return {};
  return Error(Code::invalid, "volume " + std::string(source.name) + " has volumeMode " + (block ? "Block" : "Filesystem") +
                                  ", but is specified in " + (block ? "volumeMounts" : "volumeDevices"));
}

// With another mode beside it nobody knows which one the pod means. Source: kubelet, GenerateMountVolumeFunc.
bool is_for_one_pod(const PodVolume& source) {
  view::Range<std::string_view> modes = of_claim(*source.spec).access_modes();
  return source.backing.claim && modes.size() == 1 && modes[0] == "ReadWriteOncePod";
}

// Source: kubelet's operation generator (texts).
std::string about(std::string_view what, const PodVolume& source) {
  if (is_block(*source.spec) && what != kAffinity) what = "SetUpDevice failed";
  return (is_block(*source.spec) ? "MapVolume." : "MountVolume.") + std::string(what) + " for volume " +
         quoted(source.backing.volume ? source.backing.volume->name() : source.name) + " ";
}

// Source: kubelet, checkNodeAffinity.
bool is_elsewhere(const PodVolume& source, const std::function<ObjectPtr()>& this_node) {
  view::VolumeNodeAffinity affinity = of_claim(*source.spec).node_affinity();
  const ObjectPtr node = affinity.has_required() && this_node ? this_node() : nullptr;
  if (!node) return false;
  auto terms = affinity.required().node_selector_terms();
  return std::none_of(terms.begin(), terms.end(),
                      [&](view::NodeSelectorTerm term) { return placement::node_matches(term, *node); });
}

// With kubelet's text if there is one.
Error no_such_kind(const PodVolume& source) {
  std::string_view kind = volume_source(*source.spec);
  std::string why = "this node has no volumes of the kind " + quoted(kind);
  if (kind == "csi")
    why = "driver name " + std::string(view::Volume(*source.spec).csi().driver()) +
          " not found in the list of registered CSI drivers";
  return Error(Code::unsupported, about(kSetUp, source) + ": " + why);
}

bool mounts_alone(const json::value& pod, const ContainerRef& ephemeral) {
  std::set<std::string_view> of_others;
  for (const auto& container : containers_of(pod))
    for (view::VolumeMount mount : view::Container(*container.spec).volume_mounts()) of_others.insert(mount.name());
  view::Range<view::VolumeMount> mounts = view::Container(*ephemeral.spec).volume_mounts();
  return std::any_of(mounts.begin(), mounts.end(), [&](view::VolumeMount mount) { return !of_others.contains(mount.name()); });
}

void VolumeFailures::add_unknown(std::string_view name, const Error& error) {
  unknown_.emplace(name);
  unmounted_.emplace(name);
  why_.push_back(error.text());
}

void VolumeFailures::add(const PodVolume& source, const Error& error) {
  unmounted_.emplace(source.name);
  std::string claim = source.backing.claim ? " (PVC " + source.backing.claim->key().text() + ")" : "";
  found_.push_back({is_block(*source.spec) ? "FailedMapVolume" : "FailedMount", error.text() + claim});
}

std::vector<MountFailure> VolumeFailures::take() {
  auto list = [](const std::set<std::string>& names) {
    return "[" + join(std::vector<std::string>(names.begin(), names.end()), " ") + "]";
  };
  if (!why_.empty())
    found_.push_back({"FailedMount", "Unable to attach or mount volumes: unmounted volumes=" + list(unmounted_) +
                                         ", unattached volumes=[], failed to process volumes=" + list(unknown_) + ": " +
                                         join(why_, "; ")});
  return std::move(found_);
}

}  // namespace coracle::node

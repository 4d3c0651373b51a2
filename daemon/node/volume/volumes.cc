// SPDX-License-Identifier: Apache-2.0
// See volumes.h.
#include "daemon/node/volume/volumes.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <unordered_map>

#include "daemon/node/files.h"
#include "daemon/node/id_ranges.h"
#include "daemon/node/images.h"
#include "daemon/node/resources.h"
#include "runtime/base/log.h"
#include "runtime/base/text.h"
#include "runtime/sys/file.h"
#include "runtime/sys/mount.h"
#include "runtime/sys/tree_group.h"
#include "runtime/sys/tree_removal.h"
#include "store/object/object.h"
#include "store/object/quantity.h"
#include "store/schema/views.h"

namespace coracle::node {

struct PrepareInputs {
  const json::value& pod;
  const PodPaths& paths;
  const Lookup& lookup;
  const PodIdentity& identity;
  uint32_t first_id;
  NamesByVolume inside;
};

namespace {

// Of a pod, and of a container. Each may be a mount of the host, and an open file of the daemon until the container starts; the
// kernel has 100,000 mounts in all (fs.mount-max).
constexpr size_t kVolumesMax = 500, kMountsMax = 1000;
constexpr size_t kEnvFileMax = 1 << 20;         // bytes of an environment file, as large as a ConfigMap
constexpr std::chrono::seconds kGroupTold{30};  // kubelet's: a walk that gives a volume to a group is reported after so long
constexpr uint64_t kRemovedAtOnceMax = 1000;    // entries of a pod's volumes; takes 10 ms on a slow machine
constexpr const char* kRemoved = "/.removed";   // beside the pods' directories: volumes whose content is being deleted

using VolumesByName = std::unordered_map<std::string_view, const json::value*>;

VolumesByName volumes_of(const json::value& pod) {
  VolumesByName found;
  for (view::Volume volume : view::Pod(pod).spec().volumes()) found.emplace(volume.name(), &volume.raw());
  return found;
}

// The huge page resource of a volume: the pod's only one for medium HugePages, that of the size for HugePages-<size>. Source:
// kubelet's emptyDir, getPageSize (semantics, texts).
Result<std::string> huge_page_resource(const json::value& pod, std::string_view medium) {
  auto names = huge_page_names(pod);
  if (names.empty()) return Error(Code::invalid, "hugePages storage requested, but there is no resource request for huge pages");
  if (medium == kHugePages) {
    if (names.size() > 1)
      return Error(Code::invalid, "medium " + quoted(medium) + " can't be used if container requests multiple huge page sizes");
    return *names.begin();
  }
  std::string wanted = "hugepages-" + std::string(medium.substr(kHugePages.size() + 1));
  if (names.count(wanted)) return wanted;
  return Error(Code::invalid, "medium " + quoted(medium) + " requested, but there is no resource request for " + wanted);
}

std::optional<mode_t> type_of(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return std::nullopt;
  return info.st_mode & S_IFMT;
}

// O_EXCL does not follow a dangling symbolic link, which another user of the directory may have placed there.
Result<void> make_file(const std::string& path) {
  TRY(sys::open(path, O_WRONLY | O_CREAT | O_EXCL, 0644));
  return {};
}

Result<Fd> open_path(const std::string& path) { return sys::open(path, O_PATH); }

// The mount that a place is in. A link on the disk of the pods is followed: what hangs behind it is not that disk.
std::string mount_of(const std::string& place, const AgentConfig& config) {
  auto behind = sys::mount_behind(place, config.state_dir);
  return behind ? behind->place : "/";
}

// A missing directory is not created: its disk may not be mounted yet.
Result<void> check_local(const json::value& volume) {
  std::string shown(of_claim(volume).local().path());
  auto there = type_of(shown);
  if (!there) return Error(Code::not_found, "path " + quoted(shown) + " does not exist");
  if (*there == (is_block(volume) ? S_IFBLK : S_IFDIR)) return {};
  return Error(Code::invalid, "path " + quoted(shown) + (is_block(volume) ? " is no block device" : " is no directory"));
}

// Blocks as long as it takes: minutes for a large tree with another group. OnRootMismatch avoids that.
Result<void> give_to_fs_group(const std::string& place, uint32_t group, bool only_on_mismatch, std::stop_token stop) {
  Fd root = TRY(sys::open(place, O_RDONLY | O_DIRECTORY));
  if (only_on_mismatch) {
    bool is_given = TRY(sys::is_of_group(root, group));
    if (is_given) return {};
  }
  return sys::give_to_group(root, group, std::move(stop));
}

// Creates the mount point of a share without opening it, because that would wait for its server.
Result<void> make_place(const PodPaths& paths, const std::string& volume) {
  const std::string directory = paths.state + "/volumes";
  TRY(sys::make_directories(directory, 0755));
  Fd parent = TRY(sys::open_directory(directory));
  auto made = sys::make_directory_at(parent, volume, 0755);
  return made || made.error().code() == Code::already_exists ? Result<void>() : made.take_error();
}

// What a container mounted in a volume, with mountPropagation Bidirectional, is not the volume's: it is unmounted, never deleted.
template <typename Remove>
auto remove_around_mounts(const MountHooks& mounts, const std::string& place, const Remove& remove) {
  auto removed = remove();
  const bool holds_mounts = !removed && (removed.error().err() == EXDEV || removed.error().err() == EBUSY);
  if (!holds_mounts || !mounts.unmount_below) return removed;
  if (auto unmounted = mounts.unmount_below(place); !unmounted) removed = unmounted.take_error();
  else removed = remove();
  return removed;
}

}  // namespace

// A kind of volume that the node has. The content belongs to the pod (it may write), to the node (files that the node keeps up to
// date), to an image, or to the host.
struct Volumes::VolumeKind {
  enum class Content { of_pod, of_node, of_image, of_host };
  bool (*is)(const json::value& volume);
  Content content;
  Result<void> (Volumes::*prepare)(const PodVolume& source, const PrepareInputs& inputs, VolumeResult& result) const;
  Result<Fd> (Volumes::*open)(const json::value& volume, std::string_view name, const PodPaths& paths) const;

  bool is_read_only() const { return content == Content::of_node || content == Content::of_image; }
  bool has_mount_points_made() const { return content == Content::of_pod || content == Content::of_node; }
};

const Volumes::VolumeKind* Volumes::kind_of(const json::value& volume) {
  using enum VolumeKind::Content;
  static constexpr VolumeKind kKinds[] = {
      {[](const json::value& volume) { return view::Volume(volume).has_empty_dir(); }, of_pod, &Volumes::prepare_empty_dir,
       &Volumes::open_directory},
      {[](const json::value& volume) { return view::Volume(volume).has_host_path(); }, of_host, &Volumes::prepare_host_path,
       &Volumes::open_host_path},
      {is_local, of_pod, &Volumes::prepare_local, &Volumes::open_local},
      {is_nfs, of_pod, &Volumes::prepare_nfs, &Volumes::open_directory},
      {[](const json::value& volume) { return view::Volume(volume).has_image(); }, of_image, &Volumes::prepare_image,
       &Volumes::open_directory},
      {[](const json::value& volume) { return view::Volume(volume).has_config_map(); }, of_node, &Volumes::prepare_payload,
       &Volumes::open_payload},
      {[](const json::value& volume) { return view::Volume(volume).has_secret(); }, of_node, &Volumes::prepare_payload,
       &Volumes::open_payload},
      {[](const json::value& volume) { return view::Volume(volume).has_downward_api(); }, of_node, &Volumes::prepare_payload,
       &Volumes::open_payload},
      {[](const json::value& volume) { return view::Volume(volume).has_projected(); }, of_node, &Volumes::prepare_payload,
       &Volumes::open_payload},
  };
  for (const VolumeKind& kind : kKinds)
    if (kind.is(volume)) return &kind;
  return nullptr;
}

Result<SlowPlaces::Answer> Volumes::ask(const std::string& uid, const std::string& place, SlowPlaces::Until until) const {
  auto look = [place, look_at = config_.mounts.look_at](const std::stop_token&) -> Result<void> {
    if (look_at) look_at(place);
    else (void)type_of(place);  // what is not there answers too
    return {};
  };
  return places_.call({uid, place, [&] { return mount_of(place, config_); }, until}, false, look);
}

// A volume that the node has provisioned on the disk of the pods' own directories: if that hangs, so does the node.
bool Volumes::is_beside_pods(const std::string& place) const {
  const std::string root = place.substr(0, place.rfind('/'));
  return std::ranges::find(config_.volume_dirs, root) != config_.volume_dirs.end() &&
         mount_of(root, config_) == mount_of(config_.state_dir, config_);
}

bool Volumes::answers(const std::string& place) const {
  if (is_beside_pods(place)) return true;
  auto answer = ask("", place, places_.until());
  return answer && answer->done;
}

bool Volumes::answers(const std::string& uid, const PodVolume& source, SlowPlaces::Until until, VolumeFailures& failures,
                      VolumeResult& result) const {
  const std::string place = place_on_host(*source.spec, config_.host_root);
  if (place.empty()) return true;
  if (is_beside_pods(place)) return true;
  auto answer = ask(uid, place, until);
  if (answer && answer->done) return true;
  const bool is_told = !answer || answer->waited >= kSlowTold;
  std::string why = !answer ? answer.error().text()
                    : answer->runs
                        ? place + " does not answer: its disk or its server may be away. The pod goes on when it does"
                        : place + " was not asked: " + std::to_string(kSlowCallsOfOneMax) + " calls to " +
                              mount_of(place, config_) + ", or " + std::to_string(kSlowCallsMax) + " in all, have got no answer";
  if (is_told) failures.add(source, Error(Code::timeout, about(kSetUp, source) + ": " + why));
  result.waits = result.is_slow = true;
  return false;
}

// Source: kubelet, VolumeOwnership (reason and text of the event).
bool Volumes::is_given_to_group(const json::value& pod, const PodVolume& source, SlowPlaces::Until until,
                                VolumeFailures& failures, VolumeResult& result) const {
  auto group = fs_group(pod);
  if (!group || source.backing.read_only) return true;
  const std::string place(of_claim(*source.spec).local().path()), uid(view::Pod(pod).metadata().uid());
  const bool only_on_mismatch = view::Pod(pod).spec().security_context().fs_group_change_policy() == "OnRootMismatch";
  auto give = [=, group = *group, look_at = config_.mounts.look_at](std::stop_token stop) {
    if (look_at) look_at(place);
    return give_to_fs_group(place, group, only_on_mismatch, std::move(stop));
  };
  auto owner = [&] { return "groups in " + mount_of(place, config_); };
  auto answer = places_.call({uid, "group of " + place, owner, until}, true, give);
  if (!answer) {
    failures.add(source, std::move(answer).wrap(about(kSetUp, source)).error());
    return false;
  }
  if (answer->done) return true;
  if (answer->waited >= kGroupTold) {
    const std::string shown = uid + "/volumes/kubernetes.io~local-volume/" + std::string(source.backing.volume->name());
    failures.tell("VolumePermissionChangeInProgress",
                  "Setting volume ownership for " + shown +
                      " is taking longer than expected, consider using OnRootMismatch - "
                      "https://kubernetes.io/docs/tasks/configure-pod-container/security-context/"
                      "#configure-volume-permission-and-ownership-change-policy-for-pods");
  }
  result.waits = result.is_slow = true;
  return false;
}

VolumeResult Volumes::ask_places(const json::value& pod, const volume::StorageObjects& storage) const {
  VolumeResult result;
  const VolumesInContainers there(pod);
  const SlowPlaces::Until until = places_.until();
  VolumeFailures failures;
  for (view::Volume one : there.those_of(pod)) {
    auto source = source_of(pod, one.raw(), storage);
    if (source) (void)answers(std::string(view::Pod(pod).metadata().uid()), *source, until, failures, result);
  }
  result.failures = failures.take();
  return result;
}

VolumeResult Volumes::prepare(const json::value& pod, const PodPaths& paths, const Lookup& lookup, const PodIdentity& identity,
                              bool begins, uint32_t first_id) const {
  VolumeResult result;
  const std::string uid(view::Pod(pod).metadata().uid());
  const VolumesInContainers there(pod);
  const SlowPlaces::Until until = places_.until();  // for all places: a pod with many on a dead mount must not hold its worker
  VolumeFailures failures;
  std::vector<PodVolume> shares, directories;  // last, since they may take long
  const std::vector<view::Volume> needed = there.those_of(pod);
  if (needed.size() > kVolumesMax) {
    failures.tell("FailedMount", "The containers use " + std::to_string(needed.size()) +
                                     " volumes; this node gives a pod at most " + std::to_string(kVolumesMax));
    result.failures = failures.take();
    return result;
  }
  const PrepareInputs inputs{pod, paths, lookup, identity, first_id, mounted_names(pod)};
  for (view::Volume one : needed) {
    auto source = source_of(pod, one.raw(), lookup.storage);
    auto fits = source ? check_mode(*source, there) : Result<void>(source.take_error());
    if (!fits) {
      failures.add_unknown(one.name(), fits.error());
      continue;
    }
    if (begins && is_elsewhere(*source, lookup.node)) {
      failures.add(*source, Error(Code::conflict, about(kAffinity, *source) + ": no matching NodeSelectorTerms"));
      continue;
    }
    if (is_for_one_pod(*source) && take_alone_ && !take_alone_(uid, source->backing.claim->key())) {
      failures.add(*source, Error(Code::conflict, about(kSetUp, *source) +
                                                      ": volume uses the ReadWriteOncePod access mode and is already in use by "
                                                      "another pod"));
      continue;
    }
    if (!answers(uid, *source, until, failures, result)) continue;
    const VolumeKind* kind = kind_of(*source->spec);
    auto prepared = kind ? (this->*kind->prepare)(*source, inputs, result) : Result<void>(no_such_kind(*source));
    if (!prepared) failures.add(*source, prepared.error());
    else if (is_nfs(*source->spec) && !is_block(*source->spec)) shares.push_back(*std::move(source));
    else if (is_local(*source->spec) && !is_block(*source->spec)) directories.push_back(*std::move(source));
  }
  for (const PodVolume& source : shares) {
    auto placed = make_place(paths, std::string(source.name));
    auto ready = placed ? nfs_.is_ready(uid, paths.volume(source.name), nfs_share(source)) : Result<bool>(placed.take_error());
    if (!ready) failures.add(source, std::move(ready).wrap(about(kSetUp, source)).error());
    else result.waits |= !*ready;
  }
  if (begins && failures.is_empty() && !result.waits) {
    const SlowPlaces::Until given_until = places_.until();
    bool all = true;
    for (const PodVolume& source : directories) all &= is_given_to_group(pod, source, given_until, failures, result);
    if (all) places_.forget_kept(uid);  // the next sandbox of the pod has to see to it again
  }
  result.failures = failures.take();
  return result;
}

Result<void> Volumes::prepare_empty_dir(const PodVolume& source, const PrepareInputs& inputs, VolumeResult&) const {
  return make_empty_dir(*source.spec, inputs).wrap(about(kSetUp, source));
}

Result<void> Volumes::prepare_host_path(const PodVolume& source, const PrepareInputs&, VolumeResult&) const {
  Error unsupported(Code::unsupported, "Mount options are not supported for this volume type");
  if (!mount_options(source).empty()) return std::move(unsupported).wrap(about(kOptions, source));
  return check_host_path(*source.spec).wrap(about(kSetUp, source));
}

Result<void> Volumes::prepare_local(const PodVolume& source, const PrepareInputs&, VolumeResult&) const {
  TRY(check_local(*source.spec).wrap(about(kBegin, source)));
  TRY(directory_options(source).wrap(about(kSetUp, source)));
  return {};
}

// Mounted by prepare(), after the volumes that need no server.
Result<void> Volumes::prepare_nfs(const PodVolume& source, const PrepareInputs&, VolumeResult&) const {
  return is_block(*source.spec) ? Result<void>(no_such_kind(source)) : Result<void>();
}

// Mounted when a container that mounts it starts: see pod_images.cc.
Result<void> Volumes::prepare_image(const PodVolume&, const PrepareInputs&, VolumeResult&) const { return {}; }

Result<void> Volumes::prepare_payload(const PodVolume& source, const PrepareInputs& inputs, VolumeResult& result) const {
  return write_payload_volume(*source.spec, inputs, result).wrap(about(kSetUp, source));
}

Result<void> Volumes::write_payload_volume(const json::value& volume, const PrepareInputs& inputs, VolumeResult& result) const {
  const std::string name(view::Volume(volume).name()), directory = inputs.paths.memory_volume(name);
  auto token = [&](std::string_view audience, int64_t seconds, const std::string& path) -> Result<std::string> {
    auto there = shown_file(directory, path);
    auto refresh = there ? token_refresh_time(*there) : std::nullopt;
    if (!refresh || *refresh <= clock_.now()) {
      there = tokens_(inputs.pod, audience, seconds);
      if (!there) return std::move(there).wrap("request a token");
      refresh = token_refresh_time(*there);
    }
    if (refresh) result.refresh_at = result.refresh_at ? std::min(*result.refresh_at, *refresh) : *refresh;
    return there;
  };
  Payload payload = TRY(volume_payload(inputs.pod, volume, {inputs.lookup, inputs.identity, token}));
  TRY(sys::make_directories(directory, 0755));
  TRY(files::set_mode(directory, 0755));
  auto others = inputs.inside.find(name);
  TRY(write_payload(directory, payload, fs_group(inputs.pod), clock_.now(), inputs.first_id,
                    others == inputs.inside.end() ? std::set<std::string>() : others->second));
  return {};
}

// The mode is set last and marks the directory as complete; also for a file system that is mounted again after a reboot.
Result<void> Volumes::make_empty_dir(const json::value& volume, const PrepareInputs& inputs) const {
  const std::string path = inputs.paths.volume(view::Volume(volume).name());
  TRY(sys::make_directories(path.substr(0, path.rfind('/')), 0755));
  TRY(sys::make_directories(path, kUnfinished));
  if (is_tmpfs(volume)) {
    if (!config_.mounts.tmpfs) return Error(Code::unsupported, "no memory-backed volumes on this node");
    TRY(config_.mounts.tmpfs(path, memory_volume_size(inputs.pod, volume, inputs.identity.allocatable), kUnfinished));
  } else if (is_huge_pages(volume)) {
    TRY(mount_huge_pages(inputs.pod, volume, path));
  }
  Fd place = TRY(open_path(path));
  mode_t mode = TRY(sys::stat(place)).st_mode & 07777;
  if (mode != kUnfinished) return {};
  auto group = fs_group(inputs.pod);
  const uint32_t first_id = inputs.first_id;
  if (is_in_memory(volume) && first_id) TRY(files::set_owner(path, first_id, first_id + group.value_or(0)));
  else if (group) TRY(files::set_owner(path, std::nullopt, group));
  const unsigned sticky = is_tmpfs(volume) ? 01000 : 0;  // as the kernel creates one: users may remove only their own files
  return files::set_mode(path, sticky | (group ? 02777 : 0777));
}

Result<void> Volumes::mount_huge_pages(const json::value& pod, const json::value& volume, const std::string& path) const {
  if (!config_.mounts.huge_pages) return Error(Code::unsupported, "no volumes of huge pages on this node");
  std::string resource = TRY(huge_page_resource(pod, view::Volume(volume).empty_dir().medium()));
  Quantity page_size = TRY(Quantity::parse(resource.substr(resource.find('-') + 1)));
  Bytes size = pod_request(pod, resource).bytes();
  if (const auto* limit = view::Volume(volume).empty_dir().size_limit()) {
    Quantity quantity = TRY(Quantity::from_json(*limit));
    if (!quantity.is_zero()) size = std::min(size, quantity.bytes());
  }
  return config_.mounts.huge_pages(path, page_size.bytes(), size, kUnfinished);
}

Result<void> Volumes::check_host_path(const json::value& volume) const {
  view::HostPathVolumeSource source = view::Volume(volume).host_path();
  std::string shown(source.path()), path = config_.host_root + shown;
  auto type = source.type();
  for (auto part : split(shown, '/'))
    if (part == "..") return Error(Code::invalid, "hostPath must not contain '..'");
  auto there = type_of(path);
  auto must_be = [&](mode_t wanted, const char* what) -> Result<void> {
    if (there == wanted) return {};
    return Error(Code::not_found, "hostPath type check failed: " + shown + " is not " + what);
  };
  if (type == "DirectoryOrCreate") {
    if (!there) return sys::make_directories(path, 0755);
    return must_be(S_IFDIR, "a directory");
  }
  if (type == "FileOrCreate") {
    if (!there) return make_file(path);
    return must_be(S_IFREG, "a file");
  }
  if (type == "Directory") return must_be(S_IFDIR, "a directory");
  if (type == "File") return must_be(S_IFREG, "a file");
  if (type == "Socket") return must_be(S_IFSOCK, "a socket file");
  if (type == "CharDevice") return must_be(S_IFCHR, "a character device");
  if (type == "BlockDevice") return must_be(S_IFBLK, "a block device");
  if (!there) return sys::make_directories(path, 0755);  // as container engines do for a bind mount with a missing source
  return {};
}

Result<Fd> Volumes::open_directory(const json::value&, std::string_view name, const PodPaths& paths) const {
  return open_path(paths.volume(name));
}

Result<Fd> Volumes::open_host_path(const json::value& volume, std::string_view, const PodPaths&) const {
  return open_path(config_.host_root + std::string(view::Volume(volume).host_path().path()));
}

Result<Fd> Volumes::open_local(const json::value& volume, std::string_view, const PodPaths&) const {
  return open_path(std::string(of_claim(volume).local().path()));
}

Result<Fd> Volumes::open_payload(const json::value&, std::string_view name, const PodPaths& paths) const {
  return open_path(paths.memory_volume(name));
}

Result<std::vector<VolumeMount>> Volumes::mounts(const json::value& pod, const json::value& container, const PodPaths& paths,
                                                 const std::map<std::string, std::string>& environment,
                                                 const volume::StorageObjects& storage) const {
  std::vector<VolumeMount> mounts;
  const size_t wanted = view::Container(container).volume_mounts().size();
  if (wanted > kMountsMax)
    return Error(Code::invalid, "the container has " + std::to_string(wanted) + " volume mounts; this node makes at most " +
                                    std::to_string(kMountsMax));
  const VolumesByName volumes = volumes_of(pod);
  for (view::VolumeMount mount : view::Container(container).volume_mounts()) {
    auto name = mount.name();
    auto found = volumes.find(name);
    if (found == volumes.end())
      return Error(Code::not_found, "failed to prepare volume mount: volume " + quoted(name) + " not found");
    const PodVolume behind = TRY(source_of(pod, *found->second, storage).wrap("failed to prepare volume mount"));
    const json::value* volume = behind.spec;
    if (is_block(*volume))
      return Error(Code::invalid, "volume " + std::string(name) + " has volumeMode Block, but is specified in volumeMounts");
    const VolumeKind* kind = kind_of(*volume);
    if (!kind) return no_such_kind(behind);
    Fd source = TRY((this->*kind->open)(*volume, name, paths).wrap("failed to prepare volume mount"));
    std::string sub_path = TRY(sub_path_of(mount, environment));
    const bool image = kind->content == VolumeKind::Content::of_image;
    if (!sub_path.empty()) {
      auto inside = sys::open_in(source, sub_path, O_PATH);
      const std::string whose = "for volumeMount " + quoted(name) + " of container " + quoted(view::Container(container).name());
      if (!image && is_to_be_made(inside)) {
        inside = make_sub_path(source, sub_path);
        if (!inside) return inside.take_error().wrap("failed to create subPath directory " + whose);
      }
      if (!inside) return inside.take_error().wrap("failed to prepare subPath " + whose);
      source = *std::move(inside);
    }
    bool read_only = mount.read_only() || behind.backing.read_only || kind->is_read_only();
    const bool owned_by_users = kind->is_read_only() || is_in_memory(*volume);  // by those of the pod's user namespace
    const bool id_mapped = has_own_users(pod) && !owned_by_users;
    const bool made_by_node = sub_path.empty() && kind->has_mount_points_made();
    std::vector<std::string> options;
    if (is_local(*volume)) options = TRY(directory_options(behind));
    mounts.push_back({container_path(mount.mount_path()), std::make_shared<const Fd>(std::move(source)), read_only,
                      is_recursively_read_only(mount.raw()), std::string(mount.mount_propagation()), std::string(name), id_mapped,
                      made_by_node, std::move(options)});
  }
  return mounts;
}

Result<std::vector<VolumeDevice>> Volumes::devices(const json::value& pod, const json::value& container,
                                                   const volume::StorageObjects& storage) {
  std::vector<VolumeDevice> devices;
  const VolumesByName volumes = volumes_of(pod);
  for (view::VolumeDevice wanted : view::Container(container).volume_devices()) {
    auto name = wanted.name();
    auto found = volumes.find(name);
    if (found == volumes.end()) return Error(Code::not_found, "volume " + quoted(name) + " not found");
    const PodVolume behind = TRY(source_of(pod, *found->second, storage).wrap("failed to prepare volume device"));
    if (!is_block(*behind.spec))
      return Error(Code::invalid,
                   "volume " + std::string(name) + " has volumeMode Filesystem, but is specified in volumeDevices");
    TRY(check_local(*behind.spec).wrap("failed to prepare volume device"));
    struct stat info {};
    std::string path(of_claim(*behind.spec).local().path());
    if (::stat(path.c_str(), &info) != 0) return Error::from_errno("look at " + path);
    devices.push_back({files::device(container_path(wanted.device_path()), info), behind.backing.read_only});
  }
  return devices;
}

Result<std::string> Volumes::read_file(const json::value& pod, const PodPaths& paths, std::string_view volume,
                                       const std::string& path) const {
  const VolumesByName volumes = volumes_of(pod);
  auto found = volumes.find(volume);
  if (found == volumes.end() || !view::Volume(*found->second).has_empty_dir())
    return Error(Code::invalid, "the pod has no such emptyDir");
  Fd directory = TRY(open_path(paths.volume(volume)));
  return sys::read_file_in(directory, path, kEnvFileMax);
}

bool Volumes::need_server(const json::value& pod, const volume::StorageObjects& storage) {
  view::Range<view::Volume> volumes = view::Pod(pod).spec().volumes();
  return std::any_of(volumes.begin(), volumes.end(), [&](view::Volume volume) {
    auto source = source_of(pod, volume.raw(), storage);
    return source && is_nfs(*source->spec);
  });
}

Result<void> Volumes::remove(const PodPaths& paths, const std::string& uid) const {
  TRY(nfs_.stop(uid));
  if (places_.is_stopping(uid)) return Error(Code::unavailable, "a volume is being given to the pod's group still");
  places_.forget(uid);
  const MountHooks& hooks = config_.mounts;
  if (hooks.unmount_below) TRY(hooks.unmount_below(paths.state + "/volumes"));
  for (const auto& name : files::list(paths.state + "/volumes")) TRY(images_.release(image_holder(uid, name)));
  if (hooks.unmount && sys::exists(paths.state + "/shm")) TRY(hooks.unmount(paths.state + "/shm"));
  for (const auto& directory : {paths.memory, paths.state + "/shm"}) TRY(sys::remove_tree(directory).wrap("remove volumes"));
  if (!sys::exists(paths.state)) return {};
  Fd state = TRY(sys::open_directory(paths.state).wrap("remove volumes"));
  auto remove = [&] { return sys::remove_some(state, "volumes", kRemovedAtOnceMax).wrap("remove volumes"); };
  bool is_gone = TRY(remove_around_mounts(config_.mounts, paths.state + "/volumes", remove));
  return is_gone ? Result<void>() : set_aside(state, uid).wrap("remove volumes");
}

// Deleting millions of files on a worker would delay all other pods.
Result<void> Volumes::set_aside(const Fd& state, const std::string& uid) const {
  TRY(sys::make_directories(config_.state_dir + kRemoved, 0700));
  Fd removed = TRY(sys::open_directory(config_.state_dir + kRemoved));
  std::string name = uid;
  while (sys::stat_at(removed, name)) name += "+";  // of the same pod, removed before
  TRY(sys::rename_at(state, "volumes", removed, name));
  clear(name);
  return {};
}

void Volumes::clear() const {
  for (const auto& name : files::list(config_.state_dir + kRemoved)) clear(name);
}

void Volumes::clear(const std::string& name) const {
  elsewhere_([mounts = config_.mounts, place = config_.state_dir + kRemoved, name](const std::stop_token& stop) {
    auto removed = sys::open_directory(place);
    auto remove = [&] { return removed ? sys::remove_tree(*removed, name, stop) : Result<void>(removed.error()); };
    auto gone = remove_around_mounts(mounts, place + "/" + name, remove);
    if (!gone && gone.error().code() != Code::cancelled)
      log_warning("node", "data in the volumes of a deleted pod was not removed: " + gone.error().text(), {{"pod", name}});
  });
}

}  // namespace coracle::node

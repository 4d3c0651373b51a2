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
#include "daemon/placement/placement.h"
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

// The source of a pod's volume: in the pod, or in the PersistentVolume of its claim. Both name their kind by a field.
struct PodVolume {
  std::string_view name;  // the pod's for it
  const json::value* spec = nullptr;
  volume::Backing backing;  // empty without a claim
};

// By volume: the names in it at which containers mount something else.
using NamesByVolume = std::unordered_map<std::string_view, std::set<std::string>>;

struct PrepareInputs {
  const json::value& pod;
  const PodPaths& paths;
  const Lookup& lookup;
  const PodIdentity& identity;
  uint32_t first_id;
  NamesByVolume inside;
};

namespace {

constexpr unsigned kDefaultMode = 0644;
constexpr unsigned kUnfinished = 01500;  // mode of a directory under construction; programs do not use it
// Of a pod, and of a container. Each may be a mount of the host, and an open file of the daemon until the container starts; the
// kernel has 100,000 mounts in all (fs.mount-max).
constexpr size_t kVolumesMax = 500, kMountsMax = 1000;
constexpr size_t kSubPathMax = 64 << 10;              // bytes of a path; the kernel's limit is 4096
constexpr size_t kEnvFileMax = 1 << 20;               // bytes of an environment file, as large as a ConfigMap
constexpr std::string_view kHugePages = "HugePages";  // or with a size: "HugePages-2Mi"
constexpr std::chrono::seconds kGroupTold{30};  // kubelet's: a walk that gives a volume to a group is reported after so long
constexpr uint64_t kRemovedAtOnceMax = 1000;    // entries of a pod's volumes; takes 10 ms on a slow machine
constexpr const char* kRemoved = "/.removed";   // beside the pods' directories: volumes whose content is being deleted

std::optional<uint32_t> fs_group(const json::value& pod) {
  view::PodSecurityContext context = view::Pod(pod).spec().security_context();
  if (!context.has_fs_group()) return std::nullopt;
  return uint32_t(context.fs_group());
}

// The user of all containers if they have the same one: then tokens are owned by it.
std::optional<uint32_t> common_user(const json::value& pod) {
  std::optional<int64_t> common;
  for (const auto& container : containers_of(pod)) {
    auto user = run_as_user(pod, *container.spec);
    if (!user || (common && *common != *user)) return std::nullopt;
    common = user;
  }
  if (!common) return std::nullopt;
  return uint32_t(*common);
}

class PayloadMaker {
 public:
  PayloadMaker(const json::value& pod, const PayloadSources& sources) : pod_(pod), sources_(sources) {}

  Result<Payload> make(view::Volume volume) {
    if (volume.has_config_map()) {
      view::ConfigMapVolumeSource source = volume.config_map();
      TRY(add_config_map(source, source.name(), mode_of(source.default_mode_or(kDefaultMode))));
    } else if (volume.has_secret()) {
      view::SecretVolumeSource source = volume.secret();
      TRY(add_secret(source, source.secret_name(), mode_of(source.default_mode_or(kDefaultMode))));
    } else if (volume.has_downward_api()) {
      view::DownwardAPIVolumeSource source = volume.downward_api();
      TRY(add_downward(source.items(), mode_of(source.default_mode_or(kDefaultMode))));
    } else if (volume.has_projected()) {
      unsigned mode = mode_of(volume.projected().default_mode_or(kDefaultMode));
      for (view::VolumeProjection source : volume.projected().sources()) TRY(add_projection(source, mode));
    }
    return std::move(payload_);
  }

 private:
  static unsigned mode_of(int64_t number) { return unsigned(number) & 07777; }

  Result<void> add_projection(view::VolumeProjection source, unsigned mode) {
    if (source.has_config_map()) return add_config_map(source.config_map(), source.config_map().name(), mode);
    if (source.has_secret()) return add_secret(source.secret(), source.secret().name(), mode);
    if (source.has_downward_api()) return add_downward(source.downward_api().items(), mode);
    if (source.has_service_account_token()) return add_token(source.service_account_token(), mode);
    return Error(Code::unsupported, "a source of the projected volume is of a kind that this node does not know");
  }

  // `source`: of a volume or of a projected one.
  template <typename Source>
  Result<void> add_config_map(Source source, std::string_view name, unsigned mode) {
    ObjectPtr map = TRY(objects_.config_map(name));
    if (!map && source.optional()) return {};
    if (!map) return Error(Code::not_found, "configmap " + quoted(name) + " not found");
    view::ConfigMap viewed(*map);
    Values values{viewed.data(), viewed.binary_data(), false};
    return add_items(source.items(), source.optional(), values, mode, "configmap references non-existent config key: ");
  }

  template <typename Source>
  Result<void> add_secret(Source source, std::string_view name, unsigned mode) {
    ObjectPtr secret = TRY(objects_.secret(name));
    if (!secret && source.optional()) return {};
    if (!secret) return Error(Code::not_found, "secret " + quoted(name) + " not found");
    Values values{view::Secret(*secret).data(), view::ConfigMap().binary_data(), true};
    return add_items(source.items(), source.optional(), values, mode, "references non-existent secret key: ");
  }

  struct Values {
    const json::object &data, &binary;
    bool is_secret;
  };

  Result<void> add_items(view::Range<view::KeyToPath> items, bool is_optional, const Values& values, unsigned mode,
                         std::string_view missing) {
    const auto& [data, binary, is_secret] = values;
    if (items.empty()) {
      for (const auto& [key, value] : data) TRY(add_value(std::string(key), value, is_secret, mode));
      for (const auto& [key, value] : binary) TRY(add_value(std::string(key), value, true, mode));
    }
    for (view::KeyToPath item : items) {
      const std::string_view key = item.key();
      const json::value *text = data.if_contains(key), *bytes = binary.if_contains(key);
      const json::value* found = bytes && bytes->is_string() ? bytes : text;
      if (found && found->is_string())
        TRY(add_value(std::string(item.path()), *found, is_secret || found == bytes, mode_of(item.mode_or(mode))));
      else if (!is_optional) return Error(Code::not_found, std::string(missing) + std::string(key));
    }
    return {};
  }

  Result<void> add_value(std::string path, const json::value& value, bool is_base64, unsigned mode) {
    if (!value.is_string()) return {};
    if (!is_base64) return add(path, std::string(value.get_string()), mode);
    std::string bytes = TRY(base64_decode(value.get_string()));
    return add(path, std::move(bytes), mode);
  }

  Result<void> add(const std::string& path, std::string content, unsigned mode) {
    TRY(budget_.take(path.size() + content.size()));
    payload_[path] = {std::move(content), mode, {}};
    return {};
  }

  Result<void> add_downward(view::Range<view::DownwardAPIVolumeFile> items, unsigned mode) {
    for (view::DownwardAPIVolumeFile item : items) {
      std::string value;
      if (item.has_field_ref()) {
        value = TRY(field_value(pod_, item.field_ref().field_path(), sources_.identity));
      } else if (item.has_resource_field_ref()) {
        view::ResourceFieldSelector resource = item.resource_field_ref();
        auto container = find_container(pod_, resource.container_name());
        if (!container) return Error(Code::invalid, "container " + quoted(resource.container_name()) + " not found");
        value = TRY(resource_value(*container->spec, resource.resource(), resource.divisor(), sources_.identity));
      }
      TRY(add(std::string(item.path()), std::move(value), mode_of(item.mode_or(mode))));
    }
    return {};
  }

  Result<void> add_token(view::ServiceAccountTokenProjection source, unsigned mode) {
    std::string path(source.path());
    std::string token = TRY(sources_.token(source.audience(), source.expiration_seconds_or(3600), path));
    auto user = common_user(pod_);
    if (user || fs_group(pod_)) mode = 0600;
    TRY(budget_.take(path.size() + token.size() + kTokenCost));
    payload_[path] = {std::move(token), mode, user};
    return {};
  }

  const json::value& pod_;
  const PayloadSources& sources_;
  TextBudget budget_{"the volume", kPayloadBytesMax};
  NamedObjects objects_{sources_.lookup, budget_};
  Payload payload_;
};

using VolumesByName = std::unordered_map<std::string_view, const json::value*>;

VolumesByName volumes_of(const json::value& pod) {
  VolumesByName found;
  for (view::Volume volume : view::Pod(pod).spec().volumes()) found.emplace(volume.name(), &volume.raw());
  return found;
}

bool is_huge_pages(const json::value& volume) { return view::Volume(volume).empty_dir().medium().starts_with(kHugePages); }
bool is_tmpfs(const json::value& volume) { return view::Volume(volume).empty_dir().medium() == "Memory"; }
// Volumes in memory are owned by the pod's own users, if it has a user namespace.
bool is_in_memory(const json::value& volume) { return is_tmpfs(volume) || is_huge_pages(volume); }

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

// Creates a subPath directory with the mode of its volume, because its user need not be root. The mode is set last and marks it
// as complete.
Result<Fd> make_sub_path(const Fd& volume, const std::string& path) {
  mode_t mode = TRY(sys::stat(volume)).st_mode & 07777;
  if (size_t slash = path.rfind('/'); slash != path.npos) TRY(sys::make_directories_in(volume, path.substr(0, slash), mode));
  Fd made = TRY(sys::make_directories_in(volume, path, kUnfinished));
  TRY(sys::change_mode(made, mode));  // regardless of the umask
  return made;
}

// It does not exist, or an earlier daemon ended while creating it.
bool is_to_be_made(const Result<Fd>& sub_path) {
  if (!sub_path) return sub_path.error().code() == Code::not_found;
  auto about = sys::stat(*sub_path);
  // Below a directory with fsGroup it has the set-group-ID bit.
  return about && (about->st_mode & ~mode_t(S_ISGID)) == (S_IFDIR | kUnfinished);
}

Result<Fd> open_path(const std::string& path) { return sys::open(path, O_PATH); }

// The fields that only the spec of a PersistentVolume has: a volume of the pod has none of them.
view::PersistentVolumeSpec of_claim(const json::value& volume) { return view::PersistentVolumeSpec(volume); }

// The place that a volume names; "" if it has none on the host.
std::string place_on_host(const json::value& volume, const std::string& host_root) {
  if (auto path = view::Volume(volume).host_path().path(); !path.empty()) return host_root + std::string(path);
  return std::string(of_claim(volume).local().path());
}

// The mount that a place is in. A link on the disk of the pods is followed: what hangs behind it is not that disk.
std::string mount_of(const std::string& place, const AgentConfig& config) {
  auto behind = sys::mount_behind(place, config.state_dir);
  return behind ? behind->place : "/";
}

bool is_block(const json::value& volume) { return of_claim(volume).volume_mode() == "Block"; }
bool is_local(const json::value& volume) { return of_claim(volume).has_local(); }
bool is_nfs(const json::value& volume) { return view::Volume(volume).has_nfs(); }

// A missing directory is not created: its disk may not be mounted yet.
Result<void> check_local(const json::value& volume) {
  std::string shown(of_claim(volume).local().path());
  auto there = type_of(shown);
  if (!there) return Error(Code::not_found, "path " + quoted(shown) + " does not exist");
  if (*there == (is_block(volume) ? S_IFBLK : S_IFDIR)) return {};
  return Error(Code::invalid, "path " + quoted(shown) + (is_block(volume) ? " is no block device" : " is no directory"));
}

// Those of a PersistentVolume. Its annotation is older than its field, and counts instead of it. Source: kubelet,
// MountOptionsFromSpec.
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

// The mount options of a PersistentVolume that is a directory, as far as they apply to a bind mount. Options of a file system
// apply only to its own mount. Source: mount_setattr(2).
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

// Blocks as long as it takes: minutes for a large tree with another group. OnRootMismatch avoids that.
Result<void> give_to_fs_group(const std::string& place, uint32_t group, bool only_on_mismatch, std::stop_token stop) {
  Fd root = TRY(sys::open(place, O_RDONLY | O_DIRECTORY));
  if (only_on_mismatch) {
    bool is_given = TRY(sys::is_of_group(root, group));
    if (is_given) return {};
  }
  return sys::give_to_group(root, group, std::move(stop));
}

// The variables in an expression that are unset or empty, sorted.
std::string missing_in(std::string_view expression, const std::map<std::string, std::string>& environment) {
  std::set<std::string> missing;
  const size_t last_close = expression.rfind(')');
  for (size_t i = 0; i + 1 < expression.size(); ++i) {
    if (expression[i] != '$') continue;
    bool closes = expression[i + 1] == '(' && last_close != expression.npos && last_close > i;
    size_t close = closes ? expression.find(')', i) : expression.npos;
    if (close != expression.npos) {
      std::string name(expression.substr(i + 2, close - i - 2));
      auto found = environment.find(name);
      if (found == environment.end() || found->second.empty()) missing.insert(std::move(name));
      i = close;
    } else if (expression[i + 1] == '$') {
      ++i;
    }
  }
  return join(std::vector<std::string>(missing.begin(), missing.end()), ", ");
}

// The path in the volume that a mount shows. subPath was validated by the API; the values of variables in subPathExpr were not.
// Source: kubelet, makeMounts and ExpandContainerVolumeMounts (texts).
Result<std::string> sub_path_of(view::VolumeMount mount, const std::map<std::string, std::string>& environment) {
  std::string path(mount.sub_path());
  if (auto expression = mount.sub_path_expr(); !expression.empty()) {
    if (std::string missing = missing_in(expression, environment); !missing.empty())
      return Error(Code::invalid, "missing value for " + missing);
    TextBudget budget("the subPathExpr", kSubPathMax);
    path = TRY(expand(expression, environment, budget));
  }
  if (path.starts_with('/')) return Error(Code::invalid, "error SubPath `" + path + "` must not be an absolute path");
  for (auto part : split(path, '/'))
    if (part == "..") return Error(Code::invalid, "unable to provision SubPath `" + path + "`: must not contain '..'");
  return path;
}

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

NamesByVolume mounted_names(const json::value& pod) {
  NamesByVolume found;
  for (const auto& container : containers_of(pod)) {
    view::Range<view::VolumeMount> mounts = view::Container(*container.spec).volume_mounts();
    std::set<std::string> places;
    for (view::VolumeMount mount : mounts) places.insert(container_path(mount.mount_path()));
    for (auto& place : managed_places(*container.spec)) places.insert(std::move(place));
    for (view::VolumeMount mount : mounts) {
      std::string around = container_path(mount.mount_path());
      if (around != "/") around += '/';
      std::set<std::string>& names = found[mount.name()];
      for (auto place = places.upper_bound(around); place != places.end() && place->starts_with(around); ++place)
        names.insert(place->substr(around.size(), place->find('/', around.size()) - around.size()));
    }
  }
  return found;
}

// The innermost volume mounted around `place`.
const VolumeMount* volume_around(const std::unordered_map<std::string_view, const VolumeMount*>& volumes,
                                 std::string_view place) {
  while (place != "/") {
    place = place.substr(0, std::max<size_t>(place.rfind('/'), 1));
    if (place.size() > kSubPathMax) continue;  // nothing can be mounted there, and looking up each part of it takes minutes
    if (auto found = volumes.find(place); found != volumes.end()) return found->second;
  }
  return nullptr;
}

Result<void> make_mount_point(const Fd& volume, const std::string& path, bool is_directory) {
  auto there = sys::open_in(volume, path, O_PATH);
  if (there || there.error().code() != Code::not_found) return there ? Result<void>() : there.take_error();
  size_t slash = path.rfind('/');
  Fd parent = TRY(sys::make_directories_in(volume, slash == path.npos ? "." : path.substr(0, slash), 0755));
  std::string name = path.substr(slash == path.npos ? 0 : slash + 1);
  auto made = is_directory ? sys::make_directory_at(parent, name, 0755) : Result<void>();
  if (!is_directory) TRY(sys::open_at(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0644));
  return made;
}

}  // namespace

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

namespace {

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

constexpr std::string_view kSetUp = "SetUp failed";
constexpr std::string_view kBegin = "NewMounter initialization failed";
constexpr std::string_view kOptions = "MountOptionSupport check failed";
constexpr std::string_view kAffinity = "NodeAffinity check failed";

// What did not work, and with what: a claim's volume has the name of its PersistentVolume here. Source: kubelet's operation
// generator (texts).
std::string about(std::string_view what, const PodVolume& source) {
  if (is_block(*source.spec) && what != kAffinity) what = "SetUpDevice failed";
  return (is_block(*source.spec) ? "MapVolume." : "MountVolume.") + std::string(what) + " for volume " +
         quoted(source.backing.volume ? source.backing.volume->name() : source.name) + " ";
}

// A pod that names its node is asked by no scheduler: at a local volume's path there may be another volume on this node. Source:
// kubelet, checkNodeAffinity.
bool is_elsewhere(const PodVolume& source, const std::function<ObjectPtr()>& this_node) {
  view::VolumeNodeAffinity affinity = of_claim(*source.spec).node_affinity();
  const ObjectPtr node = affinity.has_required() && this_node ? this_node() : nullptr;
  if (!node) return false;
  auto terms = affinity.required().node_selector_terms();
  return std::none_of(terms.begin(), terms.end(),
                      [&](view::NodeSelectorTerm term) { return placement::node_matches(term, *node); });
}

// Why the node does not support the volume, with kubelet's text if there is one.
Error no_such_kind(const PodVolume& source) {
  std::string_view kind = volume_source(*source.spec);
  std::string why = "this node has no volumes of the kind " + quoted(kind);
  if (kind == "csi")
    why = "driver name " + std::string(view::Volume(*source.spec).csi().driver()) +
          " not found in the list of registered CSI drivers";
  return Error(Code::unsupported, about(kSetUp, source) + ": " + why);
}

}  // namespace

// What went wrong with the volumes of one pod.
class Failures {
 public:
  // It is not known yet what the volume is.
  void add_unknown(std::string_view name, const Error& error) {
    unknown_.emplace(name);
    unmounted_.emplace(name);
    why_.push_back(error.text());
  }
  void add(const PodVolume& source, const Error& error) {
    unmounted_.emplace(source.name);
    std::string claim = source.backing.claim ? " (PVC " + source.backing.claim->key().text() + ")" : "";
    found_.push_back({is_block(*source.spec) ? "FailedMapVolume" : "FailedMount", error.text() + claim});
  }
  // Nothing went wrong yet: it takes long.
  void tell(const char* reason, std::string text) { found_.push_back({reason, std::move(text)}); }
  bool is_empty() const { return unmounted_.empty(); }
  // Source: kubelet, WaitForAttachAndMount (text).
  std::vector<MountFailure> take() {
    auto list = [](const std::set<std::string>& names) {
      return "[" + join(std::vector<std::string>(names.begin(), names.end()), " ") + "]";
    };
    if (!why_.empty())
      found_.push_back({"FailedMount", "Unable to attach or mount volumes: unmounted volumes=" + list(unmounted_) +
                                           ", unattached volumes=[], failed to process volumes=" + list(unknown_) + ": " +
                                           join(why_, "; ")});
    return std::move(found_);
  }

 private:
  std::set<std::string> unmounted_, unknown_;
  std::vector<std::string> why_;
  std::vector<MountFailure> found_;
};

namespace {

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

// A volume's mount options are those of its class, or set by the administrator who created it.
NfsShare nfs_share(const PodVolume& source) {
  view::NFSVolumeSource nfs = view::Volume(*source.spec).nfs();
  NfsShare share{std::string(nfs.server()), std::string(nfs.path()), {}};
  if (source.backing.read_only || nfs.read_only()) share.options.push_back("ro");
  for (std::string& option : mount_options(source)) share.options.push_back(std::move(option));
  return share;
}

}  // namespace

Result<Payload> volume_payload(const json::value& pod, const json::value& volume, const PayloadSources& sources) {
  return PayloadMaker(pod, sources).make(view::Volume(volume));
}

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

Result<void> make_mount_points(const std::vector<VolumeMount>& volumes, const std::vector<ManagedFile>& files) {
  std::unordered_map<std::string_view, const VolumeMount*> by_place;
  for (const auto& volume : volumes) by_place.emplace(volume.destination, &volume);
  auto make = [&](const std::string& place, bool is_directory) -> Result<void> {
    const VolumeMount* around = volume_around(by_place, place);
    if (!around || !around->made_by_node) return {};
    size_t begin = around->destination == "/" ? 1 : around->destination.size() + 1;
    return make_mount_point(*around->source, place.substr(begin), is_directory).wrap("make the place for " + place);
  };
  for (const auto& volume : volumes) TRY(make(volume.destination, S_ISDIR(TRY(sys::stat(*volume.source)).st_mode)));
  for (const auto& file : files) TRY(make(file.destination, false));
  return {};
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

bool Volumes::answers(const std::string& uid, const PodVolume& source, SlowPlaces::Until until, Failures& failures,
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
bool Volumes::is_given_to_group(const json::value& pod, const PodVolume& source, SlowPlaces::Until until, Failures& failures,
                                VolumeResult& result) const {
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
  Failures failures;
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
  Failures failures;
  std::vector<PodVolume> shares, directories;  // last, since they may take long
  const PrepareInputs inputs{pod, paths, lookup, identity, first_id, mounted_names(pod)};
  const std::vector<view::Volume> needed = there.those_of(pod);
  if (needed.size() > kVolumesMax) {
    result.failures.push_back({"FailedMount", "The containers use " + std::to_string(needed.size()) +
                                                  " volumes; this node gives a pod at most " + std::to_string(kVolumesMax)});
    return result;
  }
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

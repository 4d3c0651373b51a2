// SPDX-License-Identifier: Apache-2.0
// See storage_limits.h.
#include "daemon/node/volume/storage_limits.h"

#include <algorithm>

#include "daemon/node/record.h"
#include "daemon/node/resources.h"
#include "runtime/base/log.h"
#include "runtime/base/text.h"
#include "runtime/sys/file.h"
#include "runtime/sys/tree_size.h"
#include "store/schema/views.h"

namespace coracle::node {

namespace {

constexpr std::string_view kResource = "ephemeral-storage";

bool is_on_disk(view::Volume volume) { return volume.has_empty_dir() && volume.empty_dir().medium().empty(); }

std::optional<Quantity> size_limit_of(view::Volume volume) {
  const json::value* limit = volume.empty_dir().size_limit();
  auto quantity = limit ? Quantity::from_json(*limit) : Result<Quantity>(Quantity());
  if (!quantity || quantity->is_zero()) return std::nullopt;  // 0 means no limit
  return *quantity;
}

// The limit of the whole pod; nullopt if no container has one.
std::optional<Quantity> pod_storage_limit(const json::value& pod) {
  Quantity running, sidecars, starting;
  bool any = false;
  for (const auto& container : containers_of(pod)) {
    auto limit = amount_in(view::Container(*container.spec).resources().limits(), kResource);
    if (!limit) continue;
    any = true;
    if (container.role == Role::main) {
      running += *limit;
    } else if (container.role == Role::sidecar) {
      running += *limit, sidecars += *limit;
    } else {
      Quantity beside = sidecars;
      beside += *limit;
      starting = std::max(starting, beside);
    }
  }
  if (!any) return std::nullopt;
  return std::max(running, starting);
}

Bytes blocks_of(const std::string& path) {
  auto file = sys::open(path, O_PATH | O_NOFOLLOW);
  auto about = file ? sys::stat(*file) : Result<struct stat>(file.take_error());
  return about ? Bytes(int64_t(about->st_blocks) * 512) : Bytes();
}

// A missing directory has size 0.
Result<Bytes> size_of(const Result<Fd>& directory, std::stop_token stop) {
  if (!directory) return Bytes();
  auto size = sys::tree_size(*directory, std::move(stop));
  if (size) return size->bytes;
  if (size.error().code() == Code::cancelled) return size.take_error();
  return Bytes();
}

}  // namespace

bool has_storage_limits(const json::value& pod) {
  for (view::Volume volume : view::Pod(pod).spec().volumes())
    if (is_on_disk(volume) && size_limit_of(volume)) return true;
  return pod_storage_limit(pod).has_value();
}

std::string storage_excess(const json::value& pod, const StorageUse& use) {
  for (view::Volume volume : view::Pod(pod).spec().volumes()) {
    auto used = use.volumes.find(std::string(volume.name()));
    auto limit = size_limit_of(volume);
    if (used != use.volumes.end() && limit && used->second > limit->bytes())
      return "Usage of EmptyDir volume " + quoted(used->first) + " exceeds the limit " + quoted(limit->text()) + ". ";
  }
  if (auto limit = pod_storage_limit(pod); limit && use.total > limit->bytes())
    return "Pod ephemeral local storage usage exceeds the total limit of containers " + limit->text() + ". ";
  for (const auto& container : containers_of(pod)) {
    auto limit = amount_in(view::Container(*container.spec).resources().limits(), kResource);
    auto used = use.containers.find(std::string(container.name));
    bool is_counted = container.role == Role::main && limit && !limit->is_zero() && used != use.containers.end();
    if (is_counted && used->second > limit->bytes())
      return "Container " + std::string(container.name) + " exceeded its local ephemeral storage limit " + quoted(limit->text()) +
             ". ";
  }
  return "";
}

Result<StorageUse> measure_storage(const json::value& pod, const std::string& uid, const PodPaths& paths,
                                   runtime::Runtime& runtime, std::stop_token stop) {
  StorageUse use;
  // Then everything counts, otherwise only items with a limit of their own.
  const bool is_limited = pod_storage_limit(pod).has_value();
  for (view::Volume volume : view::Pod(pod).spec().volumes()) {
    if (!is_on_disk(volume) || (!is_limited && !size_limit_of(volume))) continue;
    std::string name(volume.name());
    Bytes size = TRY(size_of(sys::open_directory(paths.volume(name)), stop));
    use.volumes[name] = size;
    use.total.count += size.count;
  }
  if (!is_limited) return use;
  for (const char* file : {"/etc-hosts", "/resolv.conf", "/hostname"}) use.total.count += blocks_of(paths.state + file).count;
  std::map<std::string, ContainerMark> newest;
  std::map<std::string, std::string> ids;
  if (auto sandbox = runtime.sandbox(uid))
    for (const auto& state : sandbox->containers) {
      ContainerMark mark = ContainerMark::from_text(state.metadata);
      auto [there, fresh] = newest.try_emplace(mark.name, mark);
      if (!fresh && mark.attempt < there->second.attempt) continue;
      there->second = mark;
      ids[mark.name] = state.id;
    }
  for (const auto& container : containers_of(pod)) {
    std::string name(container.name);
    Bytes logs = TRY(size_of(sys::open_directory(paths.logs + "/" + name), stop));
    Bytes messages = TRY(size_of(sys::open_directory(paths.container(name)), stop));
    Bytes layer;
    if (auto id = ids.find(name); id != ids.end()) layer = TRY(size_of(runtime.writable_layer(uid, id->second), stop));
    use.containers[name] = Bytes(logs.count + messages.count + layer.count);
    use.total.count += use.containers[name].count;
  }
  return use;
}

StorageLimits::StorageLimits(const AgentConfig& config, PodTable& table, runtime::Runtime& runtime, const Clock& clock,
                             Executor elsewhere, std::function<void(const std::string&, std::string)> evict)
    : config_(config),
      table_(table),
      runtime_(runtime),
      clock_(clock),
      elsewhere_(std::move(elsewhere)),
      evict_(std::move(evict)) {}

bool StorageLimits::is_limited(const std::string& uid, const DesiredPod& pod) {
  bool stays = pod.is_static || is_critical(pod.object->json());
  if (!pod.admitted || pod.gone || stays || pod.object->deleting() || ends_by_itself(pod.object->json())) return false;
  if (pod.storage_limited) return true;
  bool limited = has_storage_limits(pod.object->json());
  table_.change_existing(uid, [&](RestingPod& known) { known.storage_limited = limited; });
  return limited;
}

void StorageLimits::look() {
  std::map<std::string, ObjectPtr> limited;
  for (const auto& [uid, pod] : table_.perhaps_limited())
    if (is_limited(uid, pod)) limited[uid] = pod.object;
  pace_.keep_due(limited, clock_.steady());
  for (auto& [uid, pod] : limited)
    elsewhere_([this, uid = uid, pod = pod](std::stop_token stop) { measure(uid, pod, std::move(stop)); });
}

void StorageLimits::measure(const std::string& uid, const ObjectPtr& pod, std::stop_token stop) {
  SteadyTime began = clock_.steady();
  auto paths = paths_of(config_, pod->key(), uid);
  auto use =
      paths ? measure_storage(pod->json(), uid, *paths, runtime_, std::move(stop)) : Result<StorageUse>(paths.take_error());
  pace_.note_end(uid, began, clock_.steady(), kStoragePeriod);
  if (!use) return log_debug("node", "measure storage of pod " + pod->key().text() + ": " + use.error().text());
  std::string why = storage_excess(pod->json(), *use);
  if (!why.empty()) evict_(uid, std::move(why));
}

}  // namespace coracle::node

// SPDX-License-Identifier: Apache-2.0
// See mount_points.h.
#include "daemon/node/volume/mount_points.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include "daemon/node/environment.h"
#include "daemon/node/pod.h"
#include "runtime/base/text.h"
#include "runtime/sys/file.h"

namespace coracle::node {
namespace {

constexpr size_t kSubPathMax = 64 << 10;  // bytes of a path; the kernel's limit is 4096

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

// subPath was validated by the API; the values of variables in subPathExpr were not. Source: kubelet, makeMounts and
// ExpandContainerVolumeMounts (texts).
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

Result<Fd> make_sub_path(const Fd& volume, const std::string& path) {
  mode_t mode = TRY(sys::stat(volume)).st_mode & 07777;
  if (size_t slash = path.rfind('/'); slash != path.npos) TRY(sys::make_directories_in(volume, path.substr(0, slash), mode));
  Fd made = TRY(sys::make_directories_in(volume, path, kUnfinished));
  TRY(sys::change_mode(made, mode));  // regardless of the umask
  return made;
}

bool is_to_be_made(const Result<Fd>& sub_path) {
  if (!sub_path) return sub_path.error().code() == Code::not_found;
  auto about = sys::stat(*sub_path);
  // Below a directory with fsGroup it has the set-group-ID bit.
  return about && (about->st_mode & ~mode_t(S_ISGID)) == (S_IFDIR | kUnfinished);
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

}  // namespace coracle::node

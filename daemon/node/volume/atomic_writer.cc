// SPDX-License-Identifier: Apache-2.0
// See atomic_writer.h. Only the node writes to the directory; containers have it read-only.
#include "daemon/node/volume/atomic_writer.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "daemon/node/files.h"
#include "runtime/base/text.h"
#include "runtime/sys/file.h"

namespace coracle::node {

namespace {

constexpr const char* kData = "..data";

Result<void> check_path(const std::string& path) {
  bool bad = path.empty() || path.front() == '/' || path.starts_with("..") || path.size() > 4096;
  for (auto part : split(path, '/')) bad = bad || part.empty() || part == "." || part == "..";
  if (bad) return Error(Code::invalid, "path " + coracle::quoted(path) + " is not usable in a volume");
  return {};
}

std::string first_part(const std::string& path) { return path.substr(0, path.find('/')); }

std::string link_target(const std::string& path) {
  char buffer[512];
  ssize_t length = ::readlink(path.c_str(), buffer, sizeof buffer);
  return length < 0 ? std::string() : std::string(buffer, size_t(length));
}

std::optional<unsigned> mode_of(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return std::nullopt;
  return info.st_mode & 07777;
}

bool is_directory(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

size_t count_files(const std::string& directory, int depth = 0) {
  size_t count = 0;
  for (const auto& name : files::list(directory)) {
    std::string path = directory + "/" + name;
    if (depth < 20 && is_directory(path)) count += count_files(path, depth + 1);
    else ++count;
  }
  return count;
}

bool shows(const std::string& directory, const Payload& payload) {
  std::string data = directory + "/" + kData;
  if (link_target(data).empty()) return false;
  for (const auto& [path, file] : payload) {
    auto there = sys::read_file(data + "/" + path);
    if (!there || *there != file.content || mode_of(data + "/" + path) != file.mode) return false;
  }
  return count_files(data) == payload.size();
}

// Creates the parent directories of a file, outermost first, below `directory`.
Result<void> make_parent_directories(const std::string& directory, const std::string& path, uint32_t first_id) {
  for (size_t slash = path.find('/'); slash != path.npos; slash = path.find('/', slash + 1)) {
    std::string full = directory + "/" + path.substr(0, slash);
    TRY(sys::make_directories(full, 0755));
    if (first_id) TRY(files::set_owner(full, first_id, first_id));
  }
  return {};
}

Result<void> write_files(const std::string& directory, const Payload& payload, std::optional<uint32_t> gid, uint32_t first_id) {
  for (const auto& [path, file] : payload) {
    std::string full = directory + "/" + path;
    TRY(make_parent_directories(directory, path, first_id));
    TRY(sys::replace_file(full, file.content, file.mode, sys::Durability::volatile_));
    if (first_id) TRY(files::set_owner(full, first_id + file.uid.value_or(0), first_id + gid.value_or(0)));
    else if (gid || file.uid) TRY(files::set_owner(full, file.uid, gid));
    if (first_id || gid || file.uid) TRY(files::set_mode(full, file.mode));  // chown clears set-id bits
  }
  return {};
}

Result<void> replace_link(const std::string& target, const std::string& path) {
  if (link_target(path) == target) return {};
  std::string fresh = path.substr(0, path.rfind('/')) + "/..new";  // the name of no file
  TRY(sys::remove_tree(fresh));                                    // left by a write that was cut off, or a subPath
  if (::symlink(target.c_str(), fresh.c_str()) != 0) return Error::from_errno("link " + fresh);
  if (::rename(fresh.c_str(), path.c_str()) != 0) return Error::from_errno("rename to " + path);
  return {};
}

}  // namespace

Result<bool> write_payload(const std::string& directory, const Payload& payload, std::optional<uint32_t> gid, WallTime now,
                           uint32_t first_id, const std::set<std::string>& others) {
  for (const auto& [path, file] : payload) TRY(check_path(path));
  Payload wanted = payload;
  if (gid)
    for (auto& [path, file] : wanted) file.mode |= 0440;
  if (shows(directory, wanted)) return false;
  TRY(sys::make_directories(directory, 0755));
  std::string before = link_target(directory + "/" + kData);
  std::string stamp = ".." + format_nano_time(now);
  std::replace(stamp.begin(), stamp.end(), ':', '_');
  // The name exists already: the clock has not advanced.
  for (int n = 0; sys::exists(directory + "/" + stamp); ++n) stamp += "." + std::to_string(n);
  std::string fresh = directory + "/" + stamp;
  TRY(sys::make_directories(fresh, 0755));
  TRY(files::set_mode(fresh, 0755));
  for (const auto& path : {directory, fresh})
    if (first_id) TRY(files::set_owner(path, first_id, first_id));
  TRY(write_files(fresh, wanted, gid, first_id));
  TRY(replace_link(stamp, directory + "/" + kData));
  std::set<std::string> visible;
  for (const auto& [path, file] : wanted) visible.insert(first_part(path));
  for (const auto& name : visible) {
    const std::string place = directory + "/" + name;
    bool is_taken = is_directory(place) && (others.count(name) || ::rmdir(place.c_str()) != 0);  // something is mounted there
    if (!is_taken) TRY(replace_link(std::string(kData) + "/" + name, place));
  }
  for (const auto& name : files::list(directory)) {
    if (name == kData || name == stamp || visible.count(name) || others.count(name)) continue;
    if (!name.starts_with("..") && is_directory(directory + "/" + name)) continue;
    TRY(sys::remove_tree(directory + "/" + name));  // removed names, the old data, and files of an interrupted write
  }
  return true;
}

Result<std::string> shown_file(const std::string& directory, const std::string& path) {
  return sys::read_file(directory + "/" + kData + "/" + path);
}

}  // namespace coracle::node

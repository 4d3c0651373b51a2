// SPDX-License-Identifier: Apache-2.0
// See directories.h.
#include "daemon/volume/local/directories.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <sstream>

#include "runtime/base/scope.h"
#include "runtime/base/text.h"
#include "runtime/sys/file.h"
#include "runtime/sys/mount.h"
#include "runtime/sys/project_quota.h"
#include "runtime/sys/tree_removal.h"

namespace coracle::volume {
namespace {

constexpr std::string_view kNew = ".new_", kStaged = ".staged_", kRemoved = ".removed_", kMark = ".coracle";
constexpr size_t kClaimShownMax = 140;  // so that the name is valid even with the longest namespace, a uid, kRemoved and a number
constexpr int kRemovedMax = 1000;       // removed directories of one volume that are not deleted yet
constexpr uint32_t kFirstNumber = 0x40000000;  // first project id; administrators usually count from 1
constexpr uint32_t kNumbers = 0x20000000;

bool is_mount_point(const std::string& path) {
  auto directory = sys::open_directory(path);
  return directory && sys::is_mount_point(*directory).value_or(false);
}

// The innermost mount point in fstab(5) that contains the directory, if nothing is mounted there; "" otherwise.
std::string unmounted_place(std::string_view fstab, std::string_view directory) {
  std::string innermost;
  for (std::string_view line : split(fstab, '\n')) {
    std::istringstream words{std::string(line)};
    std::string device, place;
    words >> device >> place;
    bool around = directory == place || (directory.starts_with(place) && directory.substr(place.size()).starts_with('/'));
    if (!device.starts_with('#') && place.starts_with('/') && around && place.size() > innermost.size()) innermost = place;
  }
  return innermost.empty() || is_mount_point(innermost) ? "" : innermost;
}

// What a container mounted in it, with mountPropagation Bidirectional, is not the volume's: it is unmounted, never deleted.
Result<void> remove_tree(const Fd& directory, const std::string& root, const std::string& name, const std::stop_token& stop) {
  const std::string path = root + "/" + name;
  auto removed = sys::remove_tree(directory, name, stop).wrap("remove " + path);
  if (removed || (removed.error().err() != EXDEV && removed.error().err() != EBUSY)) return removed;
  TRY(sys::detach_below(path).wrap("remove " + path));
  return sys::remove_tree(directory, name, stop).wrap("remove " + path);
}

}  // namespace

std::string directory_name(const Key& claim, std::string_view uid) {
  return claim.ns + "_" + claim.name.substr(0, kClaimShownMax) + "_" + std::string(uid);
}

// The root that contains it already, or the one with the most free space.
Result<DiskDirectories::Root> DiskDirectories::root_for(const std::string& name) const {
  Root best;
  Bytes most{-1};
  Error why(Code::invalid, "no directory for volumes is set");
  for (const std::string& path : roots_) {
    TRY(sys::make_directories(path, 0711));
    Fd directory = TRY(sys::open_directory(path));
    Root root{path, std::move(directory)};
    if (sys::stat_at(root.directory, name) || sys::stat_at(root.directory, std::string(kNew) + name)) return root;
    if (auto checked = check_disk(root); !checked) {
      why = checked.take_error();
      continue;
    }
    Bytes available = TRY(sys::disk_usage(root.directory)).available;
    if (available <= most) continue;
    best = std::move(root), most = available;
  }
  if (!best.directory) return why;
  return best;
}

Result<void> DiskDirectories::check_disk(const Root& root) const {
  if (sys::stat_at(root.directory, std::string(kMark))) return {};
  if (holds_(root.path))
    return Error(Code::unavailable, root.path + " holds volumes, and they are not there: is its disk mounted?");
  std::string place = unmounted_place(sys::read_file(fstab_).value_or(""), root.path);
  if (!place.empty()) return Error(Code::unavailable, "the disk of " + place + " (" + fstab_ + ") is not mounted");
  return {};
}

Result<void> DiskDirectories::mark(const Root& root) {
  TRY(sys::open_at(root.directory, std::string(kMark), O_WRONLY | O_CREAT, 0644).wrap("mark " + root.path));
  return {};
}

// Renames the directory after its quota is set: an interrupted creation is repeated.
Result<Directories::Made> DiskDirectories::make(const Key& claim, const std::string& uid, Bytes size) {
  std::string name = directory_name(claim, uid);
  Root root = TRY(root_for(name));
  TRY(mark(root));
  const std::string path = root.path + "/" + name, fresh = std::string(kNew) + name;
  const bool is_published = sys::stat_at(root.directory, name).ok();
  if (!is_published && !sys::stat_at(root.directory, fresh)) {
    TRY(stage(path, size));
    auto named = sys::rename_at(root.directory, std::string(kStaged) + name, root.directory, fresh);
    note_staged(path, false);
    TRY(std::move(named).wrap("make " + path));
  }
  Fd directory = TRY(sys::open_at(root.directory, is_published ? name : fresh, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  Made limited = TRY(limit(directory, path, size));
  TRY(sys::sync(directory));
  TRY(sys::sync(root.directory));
  return limited;
}

Result<void> DiskDirectories::publish(const std::string& path) {
  auto [root, name] = TRY(parts_of(path));
  Fd directory = TRY(sys::open_directory(root));
  auto moved = sys::rename_at(directory, std::string(kNew) + name, directory, name);
  if (!moved && moved.error().code() == Code::not_found) return {};
  TRY(std::move(moved).wrap("publish " + path));
  return sys::sync(directory);
}

Result<Directories::Made> DiskDirectories::set_size(const std::string& path, Bytes size) {
  Fd directory = TRY(sys::open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  return limit(directory, path, size);
}

// A project id with a limit or with files is in use. The directory gets its id before the limit: an id without files and limit is
// free again, wherever this is interrupted.
Result<Directories::Made> DiskDirectories::limit(const Fd& directory, const std::string& path, Bytes size) {
  std::lock_guard alone(numbers_);
  auto number = sys::project_of(directory);
  if (!number) return Made{path, number.error().text()};
  if (*number < kFirstNumber) {
    *number = kFirstNumber + fnv1a(path) % kNumbers;
    for (auto use = sys::project_use(directory, *number);; use = sys::project_use(directory, ++*number)) {
      if (!use && use.error().code() == Code::unsupported) return Made{path, use.error().text()};
      if (!use && use.error().code() != Code::not_found) return use.take_error();
      if (!use || (use->limit.count == 0 && use->inodes == 0)) break;
    }
    TRY(sys::set_project(directory, *number));
  }
  auto done = sys::set_project_limit(directory, *number, size);
  if (!done && done.error().code() != Code::unsupported) return done.take_error();
  return Made{path, done ? "" : done.error().text()};
}

Result<std::pair<std::string, std::string>> DiskDirectories::parts_of(const std::string& path) const {
  size_t slash = path.rfind('/');
  std::string root = path.substr(0, slash), name = slash == path.npos ? "" : path.substr(slash + 1);
  bool ours = std::ranges::find(roots_, root) != roots_.end() && !name.empty() && !name.starts_with('.');
  if (!ours) return Error(Code::invalid, path + " is no directory of a volume");
  return std::pair(std::move(root), std::move(name));
}

Result<void> DiskDirectories::set_aside(const std::string& path) {
  auto [root, name] = TRY(parts_of(path));
  Fd directory = TRY(sys::open_directory(root).wrap("open the directory of volumes"));
  for (const std::string& each : {name, std::string(kNew) + name}) {
    auto moved = rename_to_removed(directory, each, name);
    if (!moved && moved.error().code() != Code::not_found) return moved.take_error().wrap("set " + path + " aside");
  }
  return sys::sync(directory);
}

// Renames to the first free name and returns that.
Result<std::string> DiskDirectories::rename_to_removed(const Fd& root, const std::string& from, const std::string& name) {
  for (int n = 0; n < kRemovedMax; ++n) {
    std::string to = std::string(kRemoved) + name + (n == 0 ? "" : "." + std::to_string(n));
    if (sys::stat_at(root, to)) continue;
    TRY(sys::rename_at(root, from, root, to));
    return to;
  }
  return Error(Code::unavailable, "too much of " + name + " waits to be deleted");
}

void DiskDirectories::note_staged(const std::string& path, bool is_staged) {
  std::lock_guard alone(staging_);
  if (is_staged) staged_.insert(path);
  else staged_.erase(path);
}

Result<Fd> DiskDirectories::stage(const std::string& path, Bytes size) {
  auto [root, name] = TRY(parts_of(path));
  TRY(unstage(path));
  Fd directory = TRY(sys::open_directory(root).wrap("open the directory of volumes"));
  const std::string now = std::string(kStaged) + name;
  note_staged(path, true);
  Scope undo([&] { (void)unstage(path); });
  TRY(sys::make_directory_at(directory, now, 0777).wrap("make " + now));
  Fd made = TRY(sys::open_at(directory, now, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  TRY(sys::change_mode(made, 0777));  // regardless of the umask
  TRY(limit(made, root + "/" + now, size));
  undo.dismiss();
  return made;
}

Result<std::optional<Directories::Staged>> DiskDirectories::stage_first(const Key& claim, const std::string& uid, Bytes size) {
  std::string name = directory_name(claim, uid);
  Root root = TRY(root_for(name));
  TRY(mark(root));
  if (sys::stat_at(root.directory, name) || sys::stat_at(root.directory, std::string(kNew) + name))
    return std::optional<Staged>();
  std::string path = root.path + "/" + name;
  Fd directory = TRY(stage(path, size));
  return std::optional(Staged{std::move(path), std::move(directory)});
}

Result<void> DiskDirectories::put_staged(const std::string& path) {
  auto [root, name] = TRY(parts_of(path));
  Fd directory = TRY(sys::open_directory(root).wrap("open the directory of volumes"));
  const std::string staged = std::string(kStaged) + name;
  auto put = sys::stat_at(directory, name) ? sys::exchange_at(directory, staged, name)
                                           : sys::rename_at(directory, staged, directory, std::string(kNew) + name);
  TRY(std::move(put).wrap("put new content into " + path));
  TRY(sys::sync(directory));
  return unstage(path);
}

Result<void> DiskDirectories::unstage(const std::string& path) {
  auto [root, name] = TRY(parts_of(path));
  Fd directory = TRY(sys::open_directory(root).wrap("open the directory of volumes"));
  auto moved = rename_to_removed(directory, std::string(kStaged) + name, name);
  note_staged(path, false);
  if (!moved && moved.error().code() != Code::not_found) return moved.take_error().wrap("remove what was staged for " + path);
  if (moved) clearing_.with([](Clearing& now) { now.again = true; });  // a clear() that runs may have listed its entries before
  return {};
}

// One call runs at a time, in passes: two would delete each other's entries.
Result<void> DiskDirectories::clear(const Waits& waits, std::stop_token stop) {
  const bool is_mine = clearing_.with([](Clearing& now) { return now.again = true, !std::exchange(now.runs, true); });
  Result<void> done;
  while (is_mine && clearing_.with([](Clearing& now) { return now.runs = std::exchange(now.again, false); })) {
    done = {};
    for (const std::string& root : roots_)
      if (auto cleared = clear(root, waits, stop); !cleared && done) done = std::move(cleared);
  }
  return done;
}

Result<void> DiskDirectories::clear(const std::string& root, const Waits& waits, const std::stop_token& stop) {
  if (!sys::exists(root)) return {};
  Fd directory = TRY(sys::open_directory(root));
  auto entries = TRY(sys::list(directory));
  Result<void> done;
  for (const auto& entry : entries) {
    auto name = give_up(root, directory, entry.name, waits);
    if (!name && done) done = name.error();
    if (!name || name->empty()) continue;
    if (stop.stop_requested()) return Error(Code::cancelled, "stopped");
    auto removed = sys::open_at(directory, *name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    auto number = removed ? sys::project_of(*removed) : removed.take_error();
    if (number && *number >= kFirstNumber) (void)sys::set_project_limit(*removed, *number, Bytes(0));
    if (removed) *removed = Fd();
    auto gone = remove_tree(directory, root, *name, stop);
    if (!gone && gone.error().code() == Code::cancelled) return gone;
    if (!gone && done) done = std::move(gone);
  }
  return done;
}

// The name under which the entry is to be deleted; "" to keep it. An abandoned directory is renamed first, so that a new
// directory of its name is not affected.
Result<std::string> DiskDirectories::give_up(const std::string& root, const Fd& directory, const std::string& entry,
                                             const Waits& waits) {
  if (entry.starts_with(kRemoved)) return entry;
  const bool is_new = entry.starts_with(kNew), is_staged = entry.starts_with(kStaged);
  if (!is_new && !is_staged) return std::string();
  std::string name = entry.substr(is_new ? kNew.size() : kStaged.size());
  if (is_new && waits(name)) return std::string();
  std::unique_lock alone(staging_, std::defer_lock);
  if (is_staged) alone.lock();
  if (is_staged && staged_.count(root + "/" + name) > 0) return std::string();  // otherwise it is of an earlier daemon
  auto moved = rename_to_removed(directory, entry, name);
  if (!moved && moved.error().code() == Code::not_found) return std::string();  // it was published in the meantime
  return moved;
}

}  // namespace coracle::volume

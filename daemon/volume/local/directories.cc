// SPDX-License-Identifier: Apache-2.0
// See directories.h.
#include "daemon/volume/local/directories.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <optional>

#include "runtime/base/scope.h"
#include "runtime/base/text.h"
#include "runtime/sys/file.h"
#include "runtime/sys/mount.h"
#include "runtime/sys/tree_removal.h"

namespace coracle::volume {
namespace {

constexpr std::string_view kNew = ".new_", kStaged = ".staged_", kRemoved = ".removed_", kMark = ".coracle";
constexpr size_t kClaimShownMax = 140;  // so that the name is valid even with the longest namespace, a uid, kRemoved and a number
constexpr int kRemovedMax = 1000;       // removed directories of one volume that are not deleted yet
constexpr size_t kCallsMax = 2;         // on the disk of one root at once, so that it cannot hold all threads of the caller

// So often a call that waits for its turn looks whether another disk is in the place of the one that it waits for.
constexpr std::chrono::seconds kTurnAgain{1};

// Types of file systems that are another machine's. It may not answer.
bool is_on_server(std::string_view type) {
  constexpr std::string_view kTypes[] = {"nfs", "nfs4", "cifs", "smb3", "9p", "virtiofs", "ceph", "afs", "coda"};
  return std::ranges::find(kTypes, type) != std::end(kTypes);
}

// Types of file systems that are a program's, most of them with another machine behind it. It may not answer. "fuseblk" has a
// disk of its own.
bool is_of_program(std::string_view type) { return type == "fuse" || type.starts_with("fuse."); }

// Those that show directories of this machine at another path.
bool is_view(std::string_view type) {
  constexpr std::string_view kTypes[] = {"fuse.bindfs",       "fuse.mergerfs",  "fuse.mhddfs",        "fuse.unionfs",
                                         "fuse.unionfs-fuse", "fuse.overlayfs", "fuse.fuse-overlayfs"};
  return std::ranges::find(kTypes, type) != std::end(kTypes);
}

// Whether files of two file systems may be the same files nevertheless.
bool may_show_same(const sys::PlaceInDevice& one, const sys::PlaceInDevice& other) {
  return is_view(one.type) || is_view(other.type) || (is_on_server(one.type) && is_on_server(other.type));
}

bool is_within(const std::string& path, const std::string& directory) {
  return path.starts_with(directory) && (path.size() == directory.size() || directory == "/" || path[directory.size()] == '/');
}

// Nothing can be at such a path.
bool is_nowhere(const Error& error) {
  return error.code() == Code::not_found || error.err() == ENOTDIR || error.err() == ELOOP || error.err() == ENAMETOOLONG;
}

// Only on its disk a root has such an entry.
bool shows_disk(std::string_view entry) {
  return entry == kMark || entry.starts_with(kNew) || entry.starts_with(kStaged) || entry.starts_with(kRemoved);
}

// Root and name. The root may be one that the settings no longer have.
std::pair<std::string, std::string> split_path(const std::string& path) {
  size_t slash = path.rfind('/');
  return {path.substr(0, slash), slash == path.npos ? "" : path.substr(slash + 1)};
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

Result<Scope> DiskDirectories::begin_call(const std::string& root, IfSlow if_slow) const {
  using SteadyClock = std::chrono::steady_clock;
  auto hangs = [&](const auto& begun) {
    return if_slow == IfSlow::fail && !begun.empty() && SteadyClock::now() > *begun.begin() + patience_;
  };
  auto begin = [&](auto& begun) {
    bool may = begun.size() < kCallsMax && !hangs(begun);
    return may ? std::optional(begun.insert(SteadyClock::now())) : std::nullopt;
  };
  for (;;) {
    auto& calls = of(root).calls;  // another disk has others
    auto until = calls.with([&](const auto& begun) {
      if (if_slow == IfSlow::wait || begun.empty()) return std::optional(SteadyClock::now() + kTurnAgain);
      return hangs(begun) ? std::nullopt : std::optional(*begun.begin() + patience_);
    });
    if (!until) return Error(Code::unavailable, root + " does not answer: its disk or its server may be away, or very slow");
    auto mine = calls.wait_until(
        {}, *until, [](const auto& begun) { return begun.size() < kCallsMax; }, begin);
    if (!mine) continue;
    return Scope([&calls, mine = *mine] {
      calls.with([&](auto& begun) { begun.erase(mine); });
      calls.notify();
    });
  }
}

// The root that contains it already, or of the wanted ones that with the most free space.
Result<DiskDirectories::Root> DiskDirectories::root_for(const std::string& name, const std::string& wanted) const {
  std::optional<Root> best;
  std::vector<std::string> passed_over;
  Error why(Code::invalid, wanted.empty() ? "no directory for volumes is set"
                                          : wanted + " is none of the directories for volumes that the settings name");
  for (const std::string& path : roots_) {
    const bool is_wanted = wanted.empty() || path == wanted;
    auto root = look_at(path, name, is_wanted);
    if (!root && !is_wanted) continue;
    if (!root) {
      why = root.take_error();
      passed_over.push_back(why.text());
      continue;
    }
    if (root->has_it) return root;
    if (is_wanted && (!best || root->available > best->available)) best = *std::move(root);
  }
  if (!best) return why;
  best->passed_over = std::move(passed_over);
  return *std::move(best);
}

// Creates the root only where its disk may be.
Result<DiskDirectories::Root> DiskDirectories::look_at(const std::string& path, const std::string& name, bool is_wanted) const {
  auto has = [](const Fd& root, const std::string& entry) { return sys::stat_at(root, entry).ok(); };
  Scope call = TRY(begin_call(path));
  Root root{path, Fd()};
  if (auto there = sys::open_directory(path)) {
    root.directory = *std::move(there);
    root.has_it = has(root.directory, name) || has(root.directory, std::string(kNew) + name);
  } else if (there.error().code() != Code::not_found) {
    return there.take_error().wrap(path + " cannot be used");
  }
  if (root.has_it || !is_wanted) return root;
  if (!root.directory || !has(root.directory, std::string(kMark))) TRY(check_disk(path));
  if (!root.directory) {
    TRY(sys::make_directories(path, 0711).wrap(path + " cannot be used"));
    root.directory = TRY(sys::open_directory(path).wrap(path + " cannot be used"));
  }
  root.available = TRY(sys::disk_usage(root.directory).wrap(path + " cannot be used")).available;
  return root;
}

// For a root without the mark.
Result<void> DiskDirectories::check_disk(const std::string& root) const {
  if (holds_(root)) return Error(Code::unavailable, root + " holds volumes, and they are not there: is its disk mounted?");
  if (auto missing = missing_mount(expected_, root))
    return Error(Code::unavailable, "the disk of " + missing->place + " (" + missing->source + ") is not mounted");
  return {};
}

Error DiskDirectories::absent(const std::string& root) {
  return Error(Code::unavailable, "the mark " + root + "/" + std::string(kMark) + " is not there: is the disk of " + root +
                                      " mounted? (If its volumes are lost for good, create the mark as an empty file.)");
}

Result<void> DiskDirectories::mark(const Root& root) {
  TRY(sys::open_at(root.directory, std::string(kMark), O_WRONLY | O_CREAT | O_NOFOLLOW, 0644).wrap("mark " + root.path));
  return {};
}

// Renames the directory after its quota is set: an interrupted creation is repeated.
Result<Directories::Made> DiskDirectories::make(const Key& claim, const std::string& uid, Bytes size, const std::string& wanted) {
  std::string name = directory_name(claim, uid);
  Root root = TRY(root_for(name, wanted));
  Scope call = TRY(begin_call(root.path));
  TRY(mark(root));
  const std::string path = root.path + "/" + name, fresh = std::string(kNew) + name;
  const bool is_published = sys::stat_at(root.directory, name).ok();
  if (!is_published && !sys::stat_at(root.directory, fresh)) {
    TRY(stage_now(path, size));
    auto named = sys::rename_at(root.directory, std::string(kStaged) + name, root.directory, fresh);
    note_staged(path, false);
    TRY(std::move(named).wrap("make " + path));
  }
  Fd directory = TRY(sys::open_at(root.directory, is_published ? name : fresh, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  std::string unlimited = TRY(limit(root.directory, directory, path, size));
  TRY(sys::sync(directory));
  TRY(sys::sync(root.directory));
  return Made{path, std::move(unlimited), std::move(root.passed_over)};
}

Result<void> DiskDirectories::publish(const std::string& path) {
  auto [root, name] = TRY(parts_of(path));
  Scope call = TRY(begin_call(root));
  auto directory = sys::open_directory(root);
  if (!directory && directory.error().code() == Code::not_found) return absent(root);
  if (!directory) return directory.take_error().wrap("publish " + path);
  auto moved = sys::rename_at(*directory, std::string(kNew) + name, *directory, name);
  if (moved) return sys::sync(*directory);
  if (moved.error().code() != Code::not_found) return moved.take_error().wrap("publish " + path);
  const bool is_there = sys::stat_at(*directory, name) || sys::stat_at(*directory, std::string(kMark));
  return is_there ? Result<void>() : absent(root);
}

Result<Directories::Made> DiskDirectories::set_size(const std::string& path, Bytes size) {
  auto [root, name] = split_path(path);
  Scope call = TRY(begin_call(root));
  auto top = sys::open_directory(root);
  auto directory = top ? sys::open_at(*top, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW) : Result<Fd>(top.take_error());
  if (!directory && directory.error().code() == Code::not_found && (!top || !sys::stat_at(*top, std::string(kMark))))
    return absent(root);
  if (!directory) return directory.take_error();
  std::string unlimited = TRY(limit(*top, *directory, path, size));
  return Made{path, std::move(unlimited)};
}

// The table of mounts is read, and not the root, which may hang. The path belongs to the name, because it may be a link to
// another disk.
std::string DiskDirectories::disk_of(const std::string& root) const {
  auto around = sys::mount_around(root);
  return (around ? around->device : std::string()) + " " + root;
}

DiskDirectories::OfRoot& DiskDirectories::of(const std::string& root) const {
  return *of_roots_.with([which = disk_of(root)](auto& all) { return &all[which]; });  // its address does not change
}

Result<std::string> DiskDirectories::limit(const Fd& root, const Fd& directory, const std::string& path, Bytes size) {
  std::lock_guard alone(of(split_path(path).first).choosing);
  return numbers_.limit(root, directory, path, size);
}

Result<std::optional<Directories::Held>> DiskDirectories::hold(const std::string& path, Bytes size) {
  auto [root, name] = split_path(path);
  Scope call = TRY(begin_call(root));
  Fd top = TRY(sys::open_directory(root));
  Fd directory = TRY(sys::open_at(top, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  std::lock_guard alone(of(root).choosing);
  return numbers_.hold(top, directory, path, size);
}

std::optional<sys::ProjectUse> DiskDirectories::use_of(const std::string& path, const Fd& directory) {
  auto parts = parts_of(path);
  if (!parts) return sys::limited_use(directory);
  auto top = sys::open_directory(parts->first);
  return top ? numbers_.use_of(*top, directory) : std::nullopt;
}

Result<std::optional<Fd>> DiskDirectories::open_volume(const std::string& path) const {
  auto [root, name] = TRY(parts_of(path));
  Scope call = TRY(begin_call(root));
  Fd top = TRY(sys::open_directory(root));
  for (const std::string& each : {name, std::string(kNew) + name}) {
    auto there = sys::open_at(top, each, O_PATH | O_NOFOLLOW);
    if (there) return std::optional(*std::move(there));
    if (there.error().code() != Code::not_found) return there.take_error();
  }
  return std::optional<Fd>();
}

// By paths: in the tree of mounts, where a mount in the volume is below it, and in the file system, of which another mount may
// show a part.
Result<bool> DiskDirectories::holds(const std::string& path, const std::string& place, const Answers& answers) const {
  auto there = TRY(open_volume(path));
  if (!there) return false;
  Fd volume = *std::move(there);
  sys::PlaceInDevice ours = TRY(sys::place_in_device(volume));
  sys::MountAround around_it = TRY(sys::mount_around(place));
  bool may_hang = is_on_server(around_it.type) || is_of_program(around_it.type);
  if (around_it.device != ours.device && may_hang && !may_show_same({"", around_it.type, ""}, ours)) return false;
  if (!answers(place)) return Error(Code::timeout, place + " does not answer: its disk or its server may be away");
  auto found = sys::open(place, O_PATH);
  if (!found && is_nowhere(found.error())) return false;
  Fd other = TRY(std::move(found));
  std::string volume_path = TRY(sys::place_of(volume)), other_path = TRY(sys::place_of(other));
  if (is_within(other_path, volume_path)) return true;
  sys::PlaceInDevice its = TRY(sys::place_in_device(other));
  if (its.device == ours.device) return is_within(its.path, ours.path);
  if (may_show_same(its, ours))
    return Error(Code::unavailable, place + " is on a file system of the type " + its.type + ", the volume is on " + ours.type +
                                        ": one may show what is on the other");
  return false;
}

Result<std::pair<std::string, std::string>> DiskDirectories::parts_of(const std::string& path) const {
  auto [root, name] = split_path(path);
  bool ours = std::ranges::find(roots_, root) != roots_.end() && !name.empty() && !name.starts_with('.');
  if (!ours) return Error(Code::invalid, path + " is no directory of a volume");
  return std::pair(std::move(root), std::move(name));
}

Result<void> DiskDirectories::set_aside(const std::string& path) {
  auto [root, name] = TRY(parts_of(path));
  Scope call = TRY(begin_call(root));
  auto directory = sys::open_directory(root);
  if (!directory && directory.error().code() == Code::not_found) return absent(root);
  if (!directory) return directory.take_error().wrap("open the directory of volumes");
  bool is_disk = sys::stat_at(*directory, std::string(kMark)).ok();
  for (const std::string& each : {name, std::string(kNew) + name}) {
    auto moved = rename_to_removed(*directory, each, name);
    if (!moved && moved.error().code() != Code::not_found) return moved.take_error().wrap("set " + path + " aside");
    is_disk |= moved.ok();
  }
  if (!is_disk) return absent(root);
  return sys::sync(*directory);
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
  std::lock_guard alone(of(split_path(path).first).staging);
  staged_.with([&](std::set<std::string>& staged) {
    if (is_staged) staged.insert(path);
    else staged.erase(path);
  });
}

Result<Fd> DiskDirectories::stage(const std::string& path, Bytes size) {
  auto [root, name] = TRY(parts_of(path));
  Scope call = TRY(begin_call(root));
  return stage_now(path, size);
}

Result<Fd> DiskDirectories::stage_now(const std::string& path, Bytes size) {
  auto [root, name] = TRY(parts_of(path));
  TRY(unstage_now(path));
  Fd directory = TRY(sys::open_directory(root).wrap("open the directory of volumes"));
  const std::string now = std::string(kStaged) + name;
  note_staged(path, true);
  Scope undo([&] { (void)unstage_now(path); });
  TRY(sys::make_directory_at(directory, now, 0777).wrap("make " + now));
  Fd made = TRY(sys::open_at(directory, now, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  TRY(sys::change_mode(made, 0777));  // regardless of the umask
  ProjectNumbers::forget(directory, made);
  TRY(limit(directory, made, root + "/" + now, size));
  undo.dismiss();
  return made;
}

Result<std::optional<Directories::Staged>> DiskDirectories::stage_first(const Key& claim, const std::string& uid, Bytes size,
                                                                        const std::string& wanted) {
  std::string name = directory_name(claim, uid);
  Root root = TRY(root_for(name, wanted));
  Scope call = TRY(begin_call(root.path));
  TRY(mark(root));
  if (sys::stat_at(root.directory, name) || sys::stat_at(root.directory, std::string(kNew) + name))
    return std::optional<Staged>();
  std::string path = root.path + "/" + name;
  Fd directory = TRY(stage_now(path, size));
  return std::optional(Staged{std::move(path), std::move(directory), std::move(root.passed_over)});
}

Result<void> DiskDirectories::put_staged(const std::string& path) {
  auto [root, name] = TRY(parts_of(path));
  Scope call = TRY(begin_call(root, IfSlow::wait));
  Fd directory = TRY(sys::open_directory(root).wrap("open the directory of volumes"));
  const std::string staged = std::string(kStaged) + name;
  auto put = sys::stat_at(directory, name) ? sys::exchange_at(directory, staged, name)
                                           : sys::rename_at(directory, staged, directory, std::string(kNew) + name);
  TRY(std::move(put).wrap("put new content into " + path));
  TRY(sys::sync(directory));
  return unstage_now(path);
}

Result<void> DiskDirectories::unstage(const std::string& path) {
  auto [root, name] = TRY(parts_of(path));
  Scope call = TRY(begin_call(root, IfSlow::wait));
  return unstage_now(path);
}

Result<void> DiskDirectories::unstage_now(const std::string& path) {
  auto [root, name] = TRY(parts_of(path));
  note_staged(path, false);  // first: if the rest fails, clear() removes it
  Fd directory = TRY(sys::open_directory(root).wrap("open the directory of volumes"));
  auto moved = rename_to_removed(directory, std::string(kStaged) + name, name);
  if (!moved && moved.error().code() != Code::not_found) return moved.take_error().wrap("remove what was staged for " + path);
  if (moved) of(root).clearing.with([](Clearing& now) { now.again = true; });  // it may have listed its entries before
  return {};
}

// One call runs at a time for each root, in passes: two would delete each other's entries.
Result<void> DiskDirectories::clear(const std::string& root, const Waits& waits, std::stop_token stop) {
  auto& clearing = of(root).clearing;
  const bool is_mine = clearing.with([](Clearing& now) { return now.again = true, !std::exchange(now.runs, true); });
  Result<void> done;
  while (is_mine && clearing.with([](Clearing& now) { return now.runs = std::exchange(now.again, false); }))
    done = clear_once(root, waits, stop);
  return done;
}

// nullopt: nothing was made on it yet. Errors: unavailable if its disk is not mounted; errors of the file system.
Result<std::optional<DiskDirectories::Listed>> DiskDirectories::list(const std::string& root) const {
  auto there = sys::open_directory(root);
  if (!there && there.error().code() != Code::not_found) return there.take_error();
  std::optional<Listed> listed;
  if (there) {
    auto entries = TRY(sys::list(*there));
    listed = Listed{*std::move(there), std::move(entries)};
  }
  auto is_mark = [](const sys::DirEntry& entry) { return shows_disk(entry.name); };
  if (!listed || std::ranges::none_of(listed->entries, is_mark)) TRY(check_disk(root));
  return listed;
}

bool DiskDirectories::needs_clearing(const std::string& root) const {
  auto listed = list(root);
  if (!listed) return true;  // clear() says so, and its caller waits for the disk
  auto may_go = [](const sys::DirEntry& entry) { return shows_disk(entry.name) && entry.name != kMark; };
  return *listed && std::ranges::any_of((*listed)->entries, may_go);
}

Result<void> DiskDirectories::clear_once(const std::string& root, const Waits& waits, const std::stop_token& stop) {
  auto listed = TRY(list(root));
  if (!listed) return {};
  const Fd directory = std::move(listed->directory);
  Result<void> done;
  for (const auto& entry : listed->entries) {
    auto name = give_up(root, directory, entry.name, waits);
    if (!name && done) done = name.error();
    if (!name || name->empty()) continue;
    if (stop.stop_requested()) return Error(Code::cancelled, "stopped");
    if (auto removed = sys::open_at(directory, *name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)) {
      std::lock_guard alone(of(root).choosing);
      numbers_.release(directory, *removed);
    }
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
  std::unique_lock alone(of(root).staging, std::defer_lock);
  if (is_staged) alone.lock();
  auto is_used = [&](const std::set<std::string>& staged) { return staged.contains(root + "/" + name); };
  if (is_staged && staged_.with(is_used)) return std::string();  // otherwise nobody stages it any more
  auto moved = rename_to_removed(directory, entry, name);
  if (!moved && moved.error().code() == Code::not_found) return std::string();  // it was published in the meantime
  return moved;
}

}  // namespace coracle::volume

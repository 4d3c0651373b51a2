// SPDX-License-Identifier: Apache-2.0
// See unpack.h. Each entry: check the name ▸ open the parent inside the target ▸ remove an existing object ▸ create it by its
// parent's descriptor ▸ set owner, mode, attributes and time by its own descriptor, in this order (chown clears setuid bits and
// file capabilities).
#include "runtime/image/fetch/unpack.h"

#include <sys/sysmacros.h>

#include <climits>
#include <cstring>
#include <map>

#include "runtime/base/text.h"
#include "runtime/image/fetch/layer_form.h"
#include "runtime/image/fetch/tar.h"
#include "runtime/image/fetch/tree.h"
#include "runtime/sys/file.h"
#include "runtime/sys/inode.h"

namespace coracle::image {
namespace {

constexpr int64_t kFreeCheckEvery = int64_t(16) << 20;

// Erases the entries of a directory and everything below it from a set or map that is sorted by path. Missing entries cost
// nothing: a layer may have millions of directories, and replace one of them repeatedly.
template <typename Sorted>
void erase_tree(Sorted& entries, const std::string& path) {
  entries.erase(path);
  entries.erase(entries.lower_bound(path + "/"), entries.lower_bound(path + char('/' + 1)));
}

struct Path {  // normalised: no "", ".", ".."
  std::vector<std::string> parts;
  bool root() const { return parts.empty(); }
  const std::string& name() const { return parts.back(); }
  std::string parent() const { return join({parts.begin(), parts.end() - 1}, "/"); }
  std::string text() const { return join(parts, "/"); }
};

Result<Path> parse_path(const char* text, const UnpackLimits& limits) {
  if (!text || !*text) return Error(Code::invalid, "an entry has no name");
  std::string_view whole(text);
  if (whole.size() > limits.path_max) return Error(Code::too_large, "a name is longer than " + std::to_string(limits.path_max));
  Path path;
  for (std::string_view part : split(whole, '/')) {
    if (part.empty() || part == ".") continue;
    if (part == "..") return Error(Code::invalid, "the name " + quoted(whole) + " leaves the layer");
    if (part.size() > NAME_MAX) return Error(Code::invalid, "a part of the name " + quoted(whole) + " is too long");
    path.parts.emplace_back(part);
  }
  if (path.parts.size() > limits.depth_max) return Error(Code::too_large, "the name " + quoted(whole) + " is too deep");
  return path;
}

// Resolved inside the layer's root: links may lead elsewhere in it, but not out.
Result<Fd> open_inside(const Fd& root, const std::string& path, int flags) {
  return sys::open_in(root, path.empty() ? "/" : path, flags);
}

Result<Fd> open_child(const Fd& dir, const std::string& name, int flags, mode_t mode = 0) {
  return sys::open_at(dir, name, flags | O_NOFOLLOW, mode);
}

// Skips the attribute on a file system without support, because it would have no effect there.
Result<void> set_attribute(const Fd& object, const std::string& name, std::string_view value) {
  auto set = sys::set_attribute(object, name, value);
  if (!set && set.error().code() == Code::unsupported) return {};
  return set;
}

enum class Form : uint8_t { layer, bottom, tree };  // a layer above others; the lowest layer; a plain tree

class Tree {
 public:
  Tree(const Fd& root, Form form, const UnpackLimits& limits) : root_(root), form_(form), limits_(limits) {
    out_.implicit_dirs.insert("");
  }

  Result<void> add(TarReader& tar, archive_entry* entry);
  Result<Unpacked> finish();

 private:
  Result<const Fd*> open_parent(const Path& path);
  Result<Fd> make_parent(const std::string& path, const std::string& part_of, const std::string& name);
  Result<void> clear(const Fd& parent, const Path& path, bool for_directory, bool& was_whiteout);
  Result<void> add_root(archive_entry* entry);
  Result<void> add_whiteout(const Fd& parent, const Path& path);
  Result<void> add_file(TarReader& tar, archive_entry* entry, const Fd& parent, const Path& path);
  Result<void> add_directory(archive_entry* entry, const Fd& parent, const Path& path, bool opaque);
  Result<void> add_link(archive_entry* entry, const Fd& parent, const Path& path);
  Result<void> add_symlink(archive_entry* entry, const Fd& parent, const Path& path);
  Result<void> add_special(archive_entry* entry, const Fd& parent, const Path& path);
  Result<void> write_data(TarReader& tar, const Fd& file, int64_t size);
  Result<void> dress(archive_entry* entry, const Fd& object);
  Result<void> dress_at(archive_entry* entry, const Fd& parent, const std::string& name);
  Result<void> set_attributes(archive_entry* entry, const Fd& object);
  Result<void> make_opaque(const Fd& dir);
  Result<void> check_space(int64_t more);
  void forget_parent() { parent_.reset(); }
  bool is_hidden(const struct stat& info) const { return form_ != Form::tree && is_whiteout(info); }

  const Fd& root_;
  const Form form_;
  const UnpackLimits& limits_;
  Unpacked out_;
  int64_t entries_ = 0, bytes_ = 0, unchecked_ = kFreeCheckEvery;
  std::string parent_path_;
  Fd parent_;                                  // the last parent: entries are grouped by directory
  std::map<std::string, timespec> dir_times_;  // set last, because creating children changes them
};

timespec modified_at(archive_entry* entry) {
  if (!archive_entry_mtime_is_set(entry)) return {0, 0};
  long nanos = archive_entry_mtime_nsec(entry);
  return {archive_entry_mtime(entry), nanos < 0 || nanos > 999'999'999 ? 0 : nanos};
}

Result<std::pair<uid_t, gid_t>> owner_of(archive_entry* entry) {
  int64_t uid = archive_entry_uid(entry), gid = archive_entry_gid(entry);
  constexpr int64_t kMax = UINT32_MAX - 1;  // the maximum means "unchanged" for chown
  if (uid < 0 || gid < 0 || uid > kMax || gid > kMax) return Error(Code::invalid, "owner out of range");
  return std::pair(uid_t(uid), gid_t(gid));
}

Result<void> Tree::check_space(int64_t more) {
  if (more > limits_.bytes_max - bytes_)
    return Error(Code::too_large, "the layer holds more than " + std::to_string(limits_.bytes_max) + " bytes");
  bytes_ += more;
  return {};
}

// Opens one component of an entry's parent path, or creates it as a directory that the stream does not describe.
Result<Fd> Tree::make_parent(const std::string& path, const std::string& part_of, const std::string& name) {
  auto found = open_inside(root_, path, O_PATH | O_DIRECTORY);
  if (found) return found;
  if (found.error().code() != Code::not_found && found.error().err() != ENOTDIR) return found.take_error();
  Fd above = TRY(open_inside(root_, part_of, O_RDONLY | O_DIRECTORY));
  auto standing = sys::stat_at(above, name);
  bool whiteout = standing && is_hidden(*standing);
  if (whiteout) {
    TRY(sys::remove_tree(above, name));
  } else if (standing) {
    return Error(Code::invalid, coracle::quoted(path) + " is used as a directory but is none");
  }
  TRY(sys::make_directory_at(above, name, 0755));
  Fd made = TRY(open_child(above, name, O_RDONLY | O_DIRECTORY));
  TRY(sys::change_mode(made, 0755));
  out_.implicit_dirs.insert(path);
  if (whiteout) TRY(make_opaque(made));
  return open_inside(root_, path, O_PATH | O_DIRECTORY);
}

Result<const Fd*> Tree::open_parent(const Path& path) {
  std::string wanted = path.parent();
  if (parent_ && wanted == parent_path_) return &parent_;
  auto found = open_inside(root_, wanted, O_RDONLY | O_DIRECTORY);
  if (!found) {
    std::string walked;
    for (size_t i = 0; i + 1 < path.parts.size(); ++i) {
      std::string next = walked.empty() ? path.parts[i] : walked + "/" + path.parts[i];
      TRY(make_parent(next, walked, path.parts[i]));
      walked = next;
    }
    found = open_inside(root_, wanted, O_RDONLY | O_DIRECTORY);
  }
  parent_ = TRY(std::move(found));
  parent_path_ = wanted;
  return &parent_;
}

// Removes an existing object before a new one is created. A directory is kept if the new object is a directory.
Result<void> Tree::clear(const Fd& parent, const Path& path, bool for_directory, bool& was_whiteout) {
  auto standing = sys::stat_at(parent, path.name());
  if (!standing) return standing.error().code() == Code::not_found ? Result<void>() : Result<void>(standing.take_error());
  was_whiteout = is_hidden(*standing);
  if (S_ISDIR(standing->st_mode)) {
    if (for_directory) return {};
    erase_tree(out_.implicit_dirs, path.text());
    erase_tree(dir_times_, path.text());
  }
  return sys::remove_tree(parent, path.name());
}

Result<void> Tree::set_attributes(archive_entry* entry, const Fd& object) {
  archive_entry_xattr_reset(entry);
  const char* name = nullptr;
  const void* value = nullptr;
  size_t size = 0;
  while (archive_entry_xattr_next(entry, &name, &value, &size) == ARCHIVE_OK) {
    if (!name || !(form_ == Form::tree ? is_tree_attribute(name) : is_image_attribute(name))) continue;
    if (size > sys::kAttributeMax) return Error(Code::too_large, "an extended attribute is larger than 64 KiB");
    TRY(set_attribute(object, name, std::string_view(static_cast<const char*>(value), size)));
  }
  return {};
}

// Sets owner, mode, attributes and time by an open descriptor.
Result<void> Tree::dress(archive_entry* entry, const Fd& object) {
  auto [uid, gid] = TRY(owner_of(entry));
  TRY(sys::change_owner(object, uid, gid));
  TRY(sys::change_mode(object, archive_entry_perm(entry) & 07777));
  TRY(set_attributes(entry, object));
  return sys::set_modified(object, modified_at(entry));
}

// The same for objects that cannot be opened, links and devices: by the parent's descriptor, without following.
Result<void> Tree::dress_at(archive_entry* entry, const Fd& parent, const std::string& name) {
  auto [uid, gid] = TRY(owner_of(entry));
  TRY(sys::change_owner_at(parent, name, uid, gid));
  return sys::set_modified_at(parent, name, modified_at(entry));
}

Result<void> Tree::make_opaque(const Fd& dir) {
  if (form_ != Form::layer) return {};
  return sys::set_attribute(dir, kOpaqueAttribute, "y");
}

Result<void> Tree::add_root(archive_entry* entry) {
  if (archive_entry_filetype(entry) != AE_IFDIR || archive_entry_hardlink(entry))
    return Error(Code::invalid, "the layer's root is no directory");
  TRY(dress(entry, root_));
  out_.implicit_dirs.erase("");
  dir_times_[""] = modified_at(entry);
  return {};
}

// A whiteout only hides the layers below: an entry of this layer with that name stays.
Result<void> Tree::add_whiteout(const Fd& parent, const Path& path) {
  if (path.name() == kOpaque) return make_opaque(parent);
  if (path.name().starts_with(kAufsMeta)) return {};
  std::string hidden = path.name().substr(kWhiteout.size());
  if (hidden.empty() || hidden == "." || hidden == "..")
    return Error(Code::invalid, "the whiteout " + coracle::quoted(path.text()) + " hides no name");
  if (form_ != Form::layer) return {};
  if (auto standing = sys::stat_at(parent, hidden)) {
    if (!S_ISDIR(standing->st_mode)) return {};
    Fd dir = TRY(open_child(parent, hidden, O_RDONLY | O_DIRECTORY));
    return make_opaque(dir);
  }
  return sys::make_node_at(parent, hidden, S_IFCHR, 0);
}

Result<void> Tree::write_data(TarReader& tar, const Fd& file, int64_t size) {
  for (;;) {
    TarReader::Piece piece = TRY(tar.data());
    int64_t count = int64_t(piece.bytes.size());
    if (count == 0) return sys::resize(file, size);  // a sparse file may end in a hole
    if (piece.offset < 0 || piece.offset > size || count > size - piece.offset)
      return Error(Code::invalid, "a file is larger than it says");
    unchecked_ += count;
    if (unchecked_ > kFreeCheckEvery) {
      unchecked_ = 0;
      sys::DiskUsage usage = TRY(sys::disk_usage(root_));
      if (usage.available.count < limits_.free_reserve_bytes) return Error(Code::unavailable, "the disk is nearly full");
    }
    TRY(sys::write_at(file, piece.bytes, piece.offset));
  }
}

Result<void> Tree::add_file(TarReader& tar, archive_entry* entry, const Fd& parent, const Path& path) {
  int64_t size = archive_entry_size_is_set(entry) ? archive_entry_size(entry) : 0;
  if (size < 0) return Error(Code::invalid, "negative size");
  TRY(check_space(size));
  Fd file = TRY(open_child(parent, path.name(), O_WRONLY | O_CREAT | O_EXCL, 0600));
  TRY(write_data(tar, file, size));
  out_.size += Bytes(size);
  return dress(entry, file);
}

Result<void> Tree::add_directory(archive_entry* entry, const Fd& parent, const Path& path, bool opaque) {
  auto made = sys::make_directory_at(parent, path.name(), 0700);
  if (!made && made.error().code() != Code::already_exists) return made.take_error();
  Fd dir = TRY(open_child(parent, path.name(), O_RDONLY | O_DIRECTORY));
  TRY(dress(entry, dir));
  if (opaque) TRY(make_opaque(dir));
  dir_times_[path.text()] = modified_at(entry);
  out_.implicit_dirs.erase(path.text());
  return {};
}

// A hard link to an object of this layer. The target is resolved inside the root, and its last component is not followed.
Result<void> Tree::add_link(archive_entry* entry, const Fd& parent, const Path& path) {
  Path target = TRY(parse_path(archive_entry_hardlink(entry), limits_).wrap("hard link target"));
  if (target.root()) return Error(Code::invalid, "a hard link to the root");
  Fd target_parent = TRY(open_inside(root_, target.parent(), O_PATH | O_DIRECTORY).wrap("hard link target"));
  struct stat info = TRY(sys::stat_at(target_parent, target.name()).wrap("hard link target"));
  if (S_ISDIR(info.st_mode) || is_hidden(info)) return Error(Code::invalid, "a hard link to " + coracle::quoted(target.text()));
  return sys::link_at(target_parent, target.name(), parent, path.name());
}

Result<void> Tree::add_symlink(archive_entry* entry, const Fd& parent, const Path& path) {
  const char* target = archive_entry_symlink(entry);
  if (!target || !*target) return Error(Code::invalid, "a symbolic link to nothing");
  if (std::strlen(target) >= limits_.path_max) return Error(Code::too_large, "a symbolic link's target is too long");
  TRY(sys::symlink_at(target, parent, path.name()));
  return dress_at(entry, parent, path.name());
}

Result<void> Tree::add_special(archive_entry* entry, const Fd& parent, const Path& path) {
  mode_t type = archive_entry_filetype(entry);
  dev_t device = type == AE_IFIFO ? 0 : makedev(archive_entry_rdevmajor(entry), archive_entry_rdevminor(entry));
  TRY(sys::make_node_at(parent, path.name(), type | (archive_entry_perm(entry) & 07777), device));
  TRY(dress_at(entry, parent, path.name()));
  return {};
}

Result<void> Tree::add(TarReader& tar, archive_entry* entry) {
  if (++entries_ > limits_.entries_max)
    return Error(Code::too_large, "the layer has more than " + std::to_string(limits_.entries_max) + " entries");
  Path path = TRY(parse_path(archive_entry_pathname(entry), limits_));
  if (path.root()) return add_root(entry);
  auto here = [&](Result<void> done) { return std::move(done).wrap(coracle::quoted(path.text())); };
  const Fd* opened = TRY(open_parent(path).wrap(coracle::quoted(path.text())));
  const Fd& parent = *opened;
  if (form_ != Form::tree && path.name().starts_with(kWhiteout)) return here(add_whiteout(parent, path));

  bool link = archive_entry_hardlink(entry) != nullptr;
  auto type = archive_entry_filetype(entry);
  bool directory = !link && type == AE_IFDIR;
  bool was_whiteout = false;
  if (link) {  // a link to itself is a repeated entry: keep the file
    Path target = TRY(parse_path(archive_entry_hardlink(entry), limits_).wrap("hard link target"));
    if (target.text() == path.text()) return {};
  }
  TRY(here(clear(parent, path, directory, was_whiteout)));
  if (link) return here(add_link(entry, parent, path));
  switch (type) {
    case AE_IFREG: return here(add_file(tar, entry, parent, path));
    case AE_IFDIR: return here(add_directory(entry, parent, path, was_whiteout));
    case AE_IFLNK: return here(add_symlink(entry, parent, path));
    case AE_IFCHR:
    case AE_IFBLK:
    case AE_IFIFO: return here(add_special(entry, parent, path));
    default: return Error(Code::invalid, coracle::quoted(path.text()) + ": unknown kind of entry");
  }
}

Result<Unpacked> Tree::finish() {
  forget_parent();
  for (const auto& [path, time] : dir_times_) {
    auto dir = open_inside(root_, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (!dir && (dir.error().code() == Code::not_found || dir.error().code() == Code::invalid)) continue;  // replaced later
    Fd opened = TRY(std::move(dir));
    TRY(sys::set_modified(opened, time));
  }
  return std::move(out_);
}

Result<void> copy_attributes(const Fd& from, const Fd& to) {
  auto names = sys::list_attributes(from);
  if (!names) return {};  // no attributes
  for (const std::string& name : *names) {
    if (!is_image_attribute(name)) continue;
    std::string value = TRY(sys::get_attribute(from, name));
    TRY(set_attribute(to, name, value));
  }
  return {};
}

// The object at `path` in the layers below: the topmost layer that has the name decides.
const Fd* find_below(const std::string& path, const std::vector<const Fd*>& below, Fd& found) {
  for (const Fd* layer : below) {
    auto dir = open_inside(*layer, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (dir) return found = std::move(*dir), &found;
    if (dir.error().code() != Code::not_found) return nullptr;  // hidden, or not a directory
  }
  return nullptr;
}

}  // namespace

Result<Unpacked> unpack_layer(Source& stream, const Fd& target, bool bottom, const UnpackLimits& limits) {
  TarReader tar(stream);
  Tree layer(target, bottom ? Form::bottom : Form::layer, limits);
  for (;;) {
    archive_entry* entry = TRY(tar.next());
    if (!entry) break;
    TRY(layer.add(tar, entry));
  }
  TRY(stream.drain());  // padding is part of the digest
  return layer.finish();
}

Result<Unpacked> unpack_tree(Source& stream, const Fd& target, const std::function<void(Bytes bytes)>& counted) {
  constexpr int64_t kNoLimit = INT64_MAX;
  const UnpackLimits limits{.entries_max = kNoLimit, .bytes_max = kNoLimit, .free_reserve_bytes = 0, .depth_max = SIZE_MAX};
  TarReader tar(stream);
  Tree tree(target, Form::tree, limits);
  for (;;) {
    archive_entry* entry = TRY(tar.next());
    if (!entry) break;
    TRY(tree.add(tar, entry));
    std::string_view name = archive_entry_pathname(entry);
    bool has_data = archive_entry_filetype(entry) == AE_IFREG && !archive_entry_hardlink(entry);
    if (name != "./" && name != ".") counted(Bytes(has_data ? archive_entry_size(entry) : 0));
  }
  TRY(stream.drain());  // trailing data is no error, and its writer must not get EPIPE
  Unpacked unpacked = TRY(tree.finish());
  unpacked.entries_end = tar.entries_end();
  return unpacked;
}

Result<void> inherit_directories(const Fd& layer, const std::set<std::string>& implicit_dirs,
                                 const std::vector<const Fd*>& below) {
  for (const std::string& path : implicit_dirs) {
    Fd like;
    if (!find_below(path, below, like)) continue;
    Fd dir = TRY(open_inside(layer, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
    struct stat info = TRY(sys::stat(like));
    TRY(sys::change_owner(dir, info.st_uid, info.st_gid));
    TRY(sys::change_mode(dir, info.st_mode & 07777));
    TRY(copy_attributes(like, dir));
    TRY(sys::set_modified(dir, info.st_mtim));
  }
  return {};
}

}  // namespace coracle::image

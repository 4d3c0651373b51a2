// SPDX-License-Identifier: Apache-2.0
// See tree.h. Other processes may change a tree meanwhile: entries that have disappeared are skipped.
#include "runtime/image/fetch/tree.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <map>
#include <vector>

#include "runtime/image/fetch/inode_tar.h"
#include "runtime/image/fetch/source.h"
#include "runtime/image/fetch/unpack.h"
#include "runtime/image/fetch/zstd_writer.h"
#include "runtime/sys/file.h"
#include "runtime/sys/inode.h"
#include "runtime/sys/tree_walk.h"

namespace coracle::image {
namespace {

constexpr int64_t kTellEveryEntries = 512;
constexpr Bytes kTellEveryBytes = 8_MiB;

class Count {
 public:
  explicit Count(const runtime::TreeProgress& tell) : tell_(tell) {}
  void add(Bytes bytes) {
    ++now_.entries, now_.bytes += bytes;
    bool is_time = now_.entries - told_.entries >= kTellEveryEntries || now_.bytes - told_.bytes >= kTellEveryBytes;
    if (is_time) end();
  }
  void end() {
    told_ = now_;
    if (tell_) tell_(now_);
  }

 private:
  const runtime::TreeProgress& tell_;
  runtime::TreeCount now_, told_;
};

// The path of each entry of a walk, relative to the tree's root.
class Paths {
 public:
  std::string of(const sys::TreeEntry& entry) {
    if (entry.depth == 0) return "";
    directory_.resize(ends_[entry.depth - 1]);
    std::string path = directory_ + entry.name;
    if (!S_ISDIR(entry.about.st_mode)) return path;
    directory_ = path + "/";
    ends_.resize(entry.depth);
    ends_.push_back(directory_.size());
    return path;
  }

 private:
  std::string directory_;           // of the current entry, with a trailing slash
  std::vector<size_t> ends_ = {0};  // length of the directory's path by depth
};

// Passes a tar stream on and checks that it has an end-of-archive marker: libarchive also accepts a stream that stops after an
// entry.
class EndingSource : public Source {
 public:
  explicit EndingSource(Source& from) : from_(from) {}
  Result<std::string_view> next() override {
    std::string_view piece = TRY(from_.next());
    size_t last = piece.find_last_not_of('\0');
    zeros_ = last == piece.npos ? zeros_ + piece.size() : piece.size() - last - 1;
    size_ += piece.size();
    return piece;
  }
  // Two blocks of zeros must follow the entries. Zeros of the last file do not count.
  bool has_ended(int64_t entries_end) const {
    constexpr size_t kEnd = 1024;
    return zeros_ >= kEnd && size_ >= size_t(entries_end) + kEnd;
  }

 private:
  Source& from_;
  size_t zeros_ = 0;  // at the end so far
  size_t size_ = 0;   // so far
};

class TreeCopy {
 public:
  TreeCopy(const Fd& from, const Fd& to, const runtime::TreeProgress& counted) : from_(from), to_(to), count_(counted) {}

  Result<void> run() {
    Paths paths;
    TRY(sys::walk_tree(from_, [&](const sys::TreeEntry& entry) { return add(entry, paths.of(entry)); }, {}));
    Paths again;
    TRY(sys::walk_tree(from_, [&](const sys::TreeEntry& entry) { return set_time(entry, again.of(entry)); }, {}));
    count_.end();
    return {};
  }

 private:
  Result<void> add(const sys::TreeEntry& entry, const std::string& path) {
    const struct stat& about = entry.about;
    if (S_ISSOCK(about.st_mode)) return {};
    if (entry.depth == 0) return dress_directory(entry, to_);
    const Fd* parent = TRY(parent_of(path));
    const std::string name = entry.name;
    if (S_ISDIR(about.st_mode)) {
      TRY(sys::make_directory_at(*parent, name, 0700));
      Fd made = TRY(sys::open_at(*parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
      TRY(dress_directory(entry, made));
    } else {
      bool is_link = TRY(add_link(entry, *parent, path));
      if (!is_link) TRY(S_ISREG(about.st_mode) ? add_file(entry, *parent, path) : add_other(entry, *parent));
    }
    count_.add(S_ISREG(about.st_mode) ? Bytes(about.st_size) : Bytes(0));
    return {};
  }

  Result<const Fd*> parent_of(const std::string& path) {
    size_t slash = path.rfind('/');
    std::string wanted = slash == path.npos ? "" : path.substr(0, slash);
    if (wanted.empty()) return &to_;
    if (parent_ && wanted == parent_path_) return &parent_;
    parent_ = TRY(sys::open_no_links(to_, wanted, O_RDONLY | O_DIRECTORY));
    parent_path_ = std::move(wanted);
    return &parent_;
  }

  Result<void> dress(const Fd& source, const struct stat& about, const Fd& object) {
    TRY(sys::change_owner(object, about.st_uid, about.st_gid));
    TRY(sys::change_mode(object, about.st_mode & 07777));
    auto names = sys::list_attributes(source);
    if (!names && names.error().code() == Code::unsupported) return sys::set_modified(object, about.st_mtim);
    std::vector<std::string> all = TRY(std::move(names));
    for (const std::string& name : all) {
      if (!is_tree_attribute(name)) continue;
      std::string value = TRY(sys::get_attribute(source, name));
      TRY(sys::set_attribute(object, name, value));
    }
    return sys::set_modified(object, about.st_mtim);
  }

  Result<void> dress_directory(const sys::TreeEntry& entry, const Fd& made) {
    sys::OpenedEntry source = TRY(sys::open_entry(entry));
    return source.object ? dress(source.object, source.about, made) : Result<void>();
  }

  // Creates the entry as a hard link if its inode has been copied before. Returns whether it was.
  Result<bool> add_link(const sys::TreeEntry& entry, const Fd& parent, const std::string& path) {
    if (entry.about.st_nlink < 2) return false;
    auto [first, is_first] = links_.emplace(entry.about.st_ino, path);
    if (is_first) return false;
    size_t slash = first->second.rfind('/');
    std::string directory = slash == std::string::npos ? "." : first->second.substr(0, slash);
    Fd there = TRY(sys::open_no_links(to_, directory, O_PATH | O_DIRECTORY));
    TRY(sys::link_at(there, first->second.substr(slash + 1), parent, entry.name));
    return true;
  }

  Result<void> add_file(const sys::TreeEntry& entry, const Fd& parent, const std::string& path) {
    sys::OpenedEntry source = TRY(sys::open_entry(entry));
    if (!source.object) return {};
    Fd made = TRY(sys::open_at(parent, entry.name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
    TRY(copy_data(source.object, made, source.about.st_size).wrap(path));
    return dress(source.object, source.about, made);
  }

  Result<void> copy_data(const Fd& from, const Fd& to, int64_t size) {
    if (may_share_) {
      may_share_ = TRY(sys::share_blocks(from, to));  // if one file cannot, none can
      if (may_share_) return {};
    }
    for (int64_t at = 0; at < size;) {
      auto data = TRY(sys::data_after(from, at, size));
      if (!data) break;
      for (at = data->begin; at < data->end;) {
        const size_t chunk = size_t(std::min<int64_t>(data->end - at, buffer_.size()));
        size_t got = TRY(sys::read_at(from, std::span(buffer_.data(), chunk), at));
        if (got == 0) return Error(Code::conflict, "it shrank while it was read");
        TRY(sys::write_at(to, std::string_view(buffer_.data(), got), at));
        at += int64_t(got);
      }
    }
    return sys::resize(to, size);
  }

  Result<void> add_other(const sys::TreeEntry& entry, const Fd& parent) {
    const struct stat& about = entry.about;
    if (S_ISLNK(about.st_mode)) {
      Fd directory = TRY(sys::directory_of(entry));
      auto target = sys::read_link_at(directory, entry.name);
      if (!target && target.error().code() == Code::not_found) return {};
      std::string text = TRY(std::move(target));
      TRY(sys::symlink_at(text, parent, entry.name));
    } else {
      TRY(sys::make_node_at(parent, entry.name, about.st_mode, about.st_rdev));
    }
    TRY(sys::change_owner_at(parent, entry.name, about.st_uid, about.st_gid));
    return sys::set_modified_at(parent, entry.name, about.st_mtim);
  }

  // Creating entries has changed the directory's time.
  Result<void> set_time(const sys::TreeEntry& entry, const std::string& path) {
    if (!S_ISDIR(entry.about.st_mode)) return {};
    auto made = sys::open_no_links(to_, path.empty() ? "." : path, O_RDONLY | O_DIRECTORY);
    if (!made && made.error().code() == Code::not_found) return {};  // deleted meanwhile
    Fd opened = TRY(std::move(made));
    return sys::set_modified(opened, entry.about.st_mtim);
  }

  const Fd &from_, &to_;
  Count count_;
  std::string parent_path_;
  Fd parent_;                           // the last parent: entries are grouped by directory
  std::map<ino_t, std::string> links_;  // the first name of each inode with several names
  bool may_share_ = true;
  std::string buffer_ = std::string(256 << 10, '\0');
};

}  // namespace

bool is_tree_attribute(std::string_view name) {
  return name.starts_with("user.") || name == "security.capability" || name == "system.posix_acl_access" ||
         name == "system.posix_acl_default";
}

Result<void> write_tree(const Fd& directory, const Fd& archive, const runtime::TreeProgress& counted) {
  const Sink to_archive = [&](std::string_view bytes) { return sys::write_all(archive, bytes); };
  ZstdWriter packed(to_archive);
  const Sink to_packed = [&](std::string_view bytes) { return packed.write(bytes); };
  TarWriter tar(to_packed, TarWriter::Keep::all);
  InodeTar inodes(tar, {.attribute = is_tree_attribute, .holes = true});
  Count count(counted);
  Paths paths;
  auto add = [&](const sys::TreeEntry& entry) -> Result<void> {
    const std::string path = paths.of(entry);
    if (S_ISSOCK(entry.about.st_mode)) return {};
    if (S_ISDIR(entry.about.st_mode) || S_ISREG(entry.about.st_mode)) {
      sys::OpenedEntry opened = TRY(sys::open_entry(entry));
      if (!opened.object) return {};
      if (S_ISDIR(entry.about.st_mode)) TRY(inodes.add_directory(opened.object, path.empty() ? "./" : path + "/", opened.about));
      else TRY(inodes.add_file(opened.object, path, opened.about));
    } else {
      Fd parent = TRY(sys::directory_of(entry));
      TRY(inodes.add_other(parent, entry.name, path, entry.about));
    }
    if (entry.depth > 0) count.add(S_ISREG(entry.about.st_mode) ? Bytes(entry.about.st_size) : Bytes(0));
    return {};
  };
  TRY(sys::walk_tree(directory, add, {}));
  TRY(tar.end());
  TRY(packed.end());
  count.end();
  return {};
}

Result<void> read_tree(const Fd& archive, const Fd& directory, const runtime::TreeProgress& counted) {
  FileSource file(archive);
  DecompressingSource plain(file);
  EndingSource watched(plain);
  Count count(counted);
  Unpacked unpacked = TRY(unpack_tree(watched, directory, [&](Bytes bytes) { count.add(bytes); }));
  if (!watched.has_ended(unpacked.entries_end)) return Error(Code::invalid, "the archive is cut off: it has no end");
  TRY(sys::sync_file_system(directory));
  count.end();
  return {};
}

Result<void> copy_tree(const Fd& from, const Fd& to, const runtime::TreeProgress& counted) {
  TRY(TreeCopy(from, to, counted).run());
  return sys::sync_file_system(to);
}

}  // namespace coracle::image

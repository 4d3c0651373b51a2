// SPDX-License-Identifier: Apache-2.0
// See tree_removal.h. A depth-first walk as in tree_walk.cc: the lowest directories of the path are open, and those above are
// found again by "..". A directory is read repeatedly until it is empty, because reading a directory that loses entries may skip
// others. A directory whose parent is not open stays empty, and is removed when the parent is read again.
#include "runtime/sys/tree_removal.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "runtime/sys/file.h"

namespace coracle::sys {

namespace {

constexpr size_t kOpenMax = 32;           // open directories
constexpr int kReadingsMax = 1000;        // passes over a directory in which entries keep appearing
constexpr uint64_t kStopAskedEvery = 64;  // entries

class Removal {
 public:
  Removal(const Fd& dir, const std::string& name, std::stop_token stop) : dir_(dir), name_(name), stop_(std::move(stop)) {}

  // Returns true if everything is gone.
  Result<bool> run(uint64_t entries_max) {
    struct stat about;
    if (::fstatat(dir_.get(), name_.c_str(), &about, AT_SYMLINK_NOFOLLOW) < 0)
      return errno == ENOENT ? Result<bool>(true) : Error::from_errno("stat " + name_);
    if (!S_ISDIR(about.st_mode)) {
      TRY(unlink_at(dir_, name_));
      return true;
    }
    Fd top = TRY(open_at(dir_, name_, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
    TRY(enter(std::move(top), name_));
    while (!open_.empty()) {
      if (entries_ % kStopAskedEvery == 0 && stop_.stop_requested()) return Error(Code::cancelled, "stopped");
      if (entries_ >= entries_max) return false;
      errno = 0;
      dirent* entry = ::readdir(open_.back().directory.get());
      if (!entry && errno != 0) return Error::from_errno("read directory");
      TRY(entry ? remove(*entry) : leave());
    }
    return true;
  }

 private:
  struct Closed {
    dev_t device;
    ino_t inode;
    long place;  // position to continue at
  };
  struct Open {
    std::unique_ptr<DIR, int (*)(DIR*)> directory{nullptr, ::closedir};
    std::string name;      // in the parent, if that is open
    bool is_empty = true;  // as far as it has been read
    int readings = 0;
  };

  Result<void> enter(Fd directory, std::string name) {
    Open opened;
    opened.directory.reset(::fdopendir(directory.get()));
    if (!opened.directory) return Error::from_errno("read directory");
    (void)directory.release();  // the handle owns it now
    opened.name = std::move(name);
    open_.push_back(std::move(opened));
    if (open_.size() <= kOpenMax) return {};
    DIR* above = open_.front().directory.get();
    struct stat about;
    if (::fstat(::dirfd(above), &about) < 0) return Error::from_errno("stat");
    closed_.push_back({about.st_dev, about.st_ino, ::telldir(above)});
    open_.pop_front();
    open_.front().name = {};
    return {};
  }

  Result<void> remove(const dirent& entry) {
    if (std::strcmp(entry.d_name, ".") == 0 || std::strcmp(entry.d_name, "..") == 0) return {};
    const int here = ::dirfd(open_.back().directory.get());
    open_.back().is_empty = false;
    ++entries_;
    struct stat about;
    bool is_directory = entry.d_type == DT_DIR;
    if (entry.d_type == DT_UNKNOWN)  // some file systems do not report it
      is_directory = ::fstatat(here, entry.d_name, &about, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(about.st_mode);
    if (!is_directory) {
      // An entry that has become a directory meanwhile is handled in the next pass.
      if (::unlinkat(here, entry.d_name, 0) < 0 && errno != ENOENT && errno != EISDIR)
        return Error::from_errno("remove " + std::string(entry.d_name));
      return {};
    }
    open_how how{};
    how.flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS;
    Fd child(int(::syscall(SYS_openat2, here, entry.d_name, &how, sizeof how)));
    if (child) return enter(std::move(child), entry.d_name);
    if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == EAGAIN) return {};  // replaced meanwhile
    return Error::from_errno("remove " + std::string(entry.d_name));
  }

  // Continues with the parent of the lowest directory.
  Result<void> leave() {
    Open& here = open_.back();
    const bool has_open_parent = open_.size() > 1 || closed_.empty();
    if (has_open_parent) {
      const int parent = open_.size() > 1 ? ::dirfd(open_[open_.size() - 2].directory.get()) : dir_.get();
      if (::unlinkat(parent, here.name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) {
        open_.pop_back();
        return {};
      }
      if (errno != ENOTEMPTY || here.is_empty) return Error::from_errno("remove directory " + here.name);
    }
    if (here.is_empty) return go_up();
    if (++here.readings > kReadingsMax) return Error(Code::conflict, "somebody adds to a directory that is to be removed");
    // Opened again: after a seekdir to the end and back, ext4 returns no entries.
    Fd again(::openat(::dirfd(here.directory.get()), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    here.directory.reset(again ? ::fdopendir(again.get()) : nullptr);
    if (!here.directory) return Error::from_errno("read directory");
    (void)again.release();  // the handle owns it now
    here.is_empty = true;
    return {};
  }

  Result<void> go_up() {
    const Closed above = closed_.back();
    Fd found(::openat(::dirfd(open_.back().directory.get()), "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    struct stat about;
    if (!found || ::fstat(found.get(), &about) < 0 || about.st_dev != above.device || about.st_ino != above.inode)
      return Error(Code::conflict, "a directory that is to be removed was moved");
    closed_.pop_back();
    open_.clear();
    TRY(enter(std::move(found), closed_.empty() ? name_ : std::string()));
    open_.back().is_empty = false;  // it still contains the subdirectory
    ::seekdir(open_.back().directory.get(), above.place);
    return {};
  }

  const Fd& dir_;
  const std::string& name_;
  const std::stop_token stop_;
  std::vector<Closed> closed_;  // from the root down; the open ones are below
  std::deque<Open> open_;
  uint64_t entries_ = 0;
};

}  // namespace

Result<void> remove_tree(const Fd& dir, const std::string& name, std::stop_token stop) {
  TRY(Removal(dir, name, std::move(stop)).run(UINT64_MAX).wrap("remove " + name));
  return {};
}

Result<bool> remove_some(const Fd& dir, const std::string& name, uint64_t entries_max) {
  return Removal(dir, name, {}).run(entries_max).wrap("remove " + name);
}

Result<void> remove_tree(const Fd& dir, const std::string& name) { return remove_tree(dir, name, {}); }

}  // namespace coracle::sys

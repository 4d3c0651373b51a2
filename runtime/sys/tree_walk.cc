// SPDX-License-Identifier: Apache-2.0
// See tree_walk.h. A depth-first walk: the directories from the root to the current one are on a stack. The lowest are open.
// Those above are closed, with the position to continue at, and are found again by "..", which must lead to the same inode.
#include "runtime/sys/tree_walk.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace coracle::sys {

namespace {

constexpr size_t kOpenLevelsMax = 32;     // open directories
constexpr uint64_t kStopCheckEvery = 64;  // entries

using Directory = std::unique_ptr<DIR, int (*)(DIR*)>;

struct Level {
  Directory directory{nullptr, ::closedir};  // null: currently closed
  dev_t device = 0;
  ino_t inode = 0;
  long place = 0;  // position to continue at after closing
};

class Walk {
 public:
  Walk(const std::function<Result<void>(const TreeEntry&)>& each, std::stop_token stop) : each_(each), stop_(std::move(stop)) {}

  Result<void> run(const Fd& root) {
    Fd own(::openat(root.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!own) return Error::from_errno("read directory");
    struct stat about;
    if (::fstat(own.get(), &about) < 0) return Error::from_errno("stat");
    TRY(each_({own.get(), ".", 0, about}));
    if (!enter(std::move(own), about)) return Error::from_errno("read directory");
    while (!levels_.empty()) {
      if (entries_ % kStopCheckEvery == 0 && stop_.stop_requested())
        return Error(Code::cancelled, "the walk through a directory tree was cancelled");
      dirent* entry = ::readdir(levels_.back().directory.get());
      if (!entry && !leave()) break;
      if (entry) TRY(look_at(entry->d_name));
    }
    return {};
  }

 private:
  Result<void> look_at(const char* name) {
    if (std::strcmp(name, ".") == 0 || std::strcmp(name, "..") == 0) return {};
    const int here = ::dirfd(levels_.back().directory.get());
    struct stat about;
    ++entries_;
    if (::fstatat(here, name, &about, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0) return {};  // deleted meanwhile
    if (about.st_dev != levels_.back().device) return {};                                     // a mount point
    TRY(each_({here, name, levels_.size(), about}));
    if (!S_ISDIR(about.st_mode)) return {};
    open_how how{};
    how.flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS;
    Fd child(int(::syscall(SYS_openat2, here, name, &how, sizeof how)));
    if (child && ::fstat(child.get(), &about) == 0) (void)enter(std::move(child), about);  // otherwise it was replaced meanwhile
    return {};
  }

  bool enter(Fd directory, const struct stat& about) {
    Level level;
    level.device = about.st_dev, level.inode = about.st_ino;
    level.directory.reset(::fdopendir(directory.get()));
    if (!level.directory) return false;
    (void)directory.release();  // the handle owns it now
    levels_.push_back(std::move(level));
    if (levels_.size() > kOpenLevelsMax) close(levels_[levels_.size() - 1 - kOpenLevelsMax]);
    return true;
  }

  static void close(Level& level) {
    if (!level.directory) return;
    level.place = ::telldir(level.directory.get());
    level.directory.reset();
  }

  // Continues with the parent directory. False: it was not found again.
  bool leave() {
    Level done = std::move(levels_.back());
    levels_.pop_back();
    if (levels_.empty() || levels_.back().directory) return true;
    Level& above = levels_.back();
    Fd found(::openat(::dirfd(done.directory.get()), "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    struct stat about;
    if (!found || ::fstat(found.get(), &about) < 0 || about.st_dev != above.device || about.st_ino != above.inode) return false;
    above.directory.reset(::fdopendir(found.get()));
    if (!above.directory) return false;
    (void)found.release();  // the handle owns it now
    ::seekdir(above.directory.get(), above.place);
    return true;
  }

  const std::function<Result<void>(const TreeEntry&)>& each_;
  const std::stop_token stop_;
  std::vector<Level> levels_;  // from the root down
  uint64_t entries_ = 0;
};

}  // namespace

Result<OpenedEntry> open_entry(const TreeEntry& entry) {
  const int kind = S_ISDIR(entry.about.st_mode) ? O_DIRECTORY : O_NONBLOCK;
  OpenedEntry opened{Fd(::openat(entry.directory, entry.name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | kind)), {}};
  if (!opened.object && (errno == ENOENT || errno == ELOOP || errno == ENOTDIR || errno == ENXIO)) return OpenedEntry{};
  if (!opened.object) return Error::from_errno("open " + std::string(entry.name));
  if (::fstat(opened.object.get(), &opened.about) < 0) return Error::from_errno("stat " + std::string(entry.name));
  if ((opened.about.st_mode & S_IFMT) != (entry.about.st_mode & S_IFMT)) return OpenedEntry{};
  return opened;
}

Result<Fd> directory_of(const TreeEntry& entry) {
  Fd copy(::fcntl(entry.directory, F_DUPFD_CLOEXEC, 0));
  if (!copy) return Error::from_errno("copy a descriptor");
  return copy;
}

Result<void> walk_tree(const Fd& root, const std::function<Result<void>(const TreeEntry&)>& each, std::stop_token stop) {
  return Walk(each, std::move(stop)).run(root);
}

}  // namespace coracle::sys

// SPDX-License-Identifier: Apache-2.0
// Directories of this machine that are the volumes of claims.
//   <root>/.new_<namespace>_<claim>_<uid>      created, but no PersistentVolume names it yet: it never held data. Or a volume
//                                              whose name a loss of power took back
//   <root>/<namespace>_<claim>_<uid>           a volume; only set_aside() removes it, whatever the store contains
//   <root>/.staged_<namespace>_<claim>_<uid>   gets its rights, or content that is to take a volume's place
//   <root>/.removed_<namespace>_<claim>_<uid>… its content is deleted by clear(), also after a restart
//   <root>/.coracle                            marks the disk, so that an empty mount point is not taken for it
// There is no other record on the disk. Each operation checks what exists, so it can be repeated after a crash.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/fd.h"
#include "runtime/base/guarded.h"
#include "runtime/base/result.h"
#include "runtime/base/units.h"
#include "store/object/kind.h"
#include "store/object/object_ptr.h"

namespace coracle::volume {

// The directory's name. A long claim name is cut so that the result is a valid file name.
std::string directory_name(const Key& claim, std::string_view uid);

class Directories {
 public:
  virtual ~Directories() = default;
  struct Made {
    std::string path;
    std::string unlimited;  // why its size is not enforced; "" when the file system enforces it
  };
  // Creates the claim's directory, on the root with the most free space, unless it exists. publish() then gives it the returned
  // path. Blocks for the disk. Errors: unavailable when the disk of no root is mounted; errors of the file system.
  virtual Result<Made> make(const Key& claim, const std::string& uid, Bytes size) = 0;
  // To be called once a PersistentVolume names the path.
  virtual Result<void> publish(const std::string& path) = 0;
  // Returns as make() does. Errors: not_found.
  virtual Result<Made> set_size(const std::string& path, Bytes size) = 0;
  // Removes the volume's path. Its content is deleted later, by clear(). Succeeds when nothing exists there. Errors: invalid when
  // the path is not a volume's; errors of the file system.
  virtual Result<void> set_aside(const std::string& path) = 0;
  // Makes an empty directory beside the volume's, with a limit of its own, for content that is to take the volume's place. What
  // is staged already goes. Blocks for the disk. Errors: invalid when the path is not a volume's; errors of the file system.
  virtual Result<Fd> stage(const std::string& path, Bytes size) = 0;
  struct Staged {
    std::string path;  // of the volume
    Fd directory;
  };
  // The same instead of make(), for a volume that is to begin with some content. Nothing when make() or this has made it already.
  // Errors as make()'s.
  virtual Result<std::optional<Staged>> stage_first(const Key& claim, const std::string& uid, Bytes size) = 0;
  // What was staged is the volume from now on, at once, also after a loss of power; what was in the volume is deleted by clear().
  // One that was staged first is as after make().
  virtual Result<void> put_staged(const std::string& path) = 0;
  virtual Result<void> unstage(const std::string& path) = 0;  // it goes. Succeeds when there is none
  // Deletes the content of removed volumes, their quotas, and unpublished directories that nobody waits for any more.
  // `waits`: returns whether the claim of the directory of this name exists, or its volume. Blocks until all is deleted, or
  // leaves it to a call that is under way. What cannot be deleted does not keep the rest. Errors: cancelled; the first one of the
  // file system.
  using Waits = std::function<bool(const std::string& name)>;
  virtual Result<void> clear(const Waits& waits, std::stop_token stop) = 0;
};

class DiskDirectories : public Directories {
 public:
  // Each root may be on a disk of its own; it is created together with the first volume. Nothing is created on a root without the
  // mark when `holds` returns that a PersistentVolume is on it, or when fstab(5) has a mount for it that is not mounted.
  using Holds = std::function<bool(const std::string& root)>;
  DiskDirectories(std::vector<std::string> roots, Holds holds, std::string fstab = "/etc/fstab")
      : roots_(std::move(roots)), holds_(std::move(holds)), fstab_(std::move(fstab)) {}
  Result<Made> make(const Key& claim, const std::string& uid, Bytes size) override;
  Result<void> publish(const std::string& path) override;
  Result<Made> set_size(const std::string& path, Bytes size) override;
  Result<void> set_aside(const std::string& path) override;
  Result<Fd> stage(const std::string& path, Bytes size) override;
  Result<std::optional<Staged>> stage_first(const Key& claim, const std::string& uid, Bytes size) override;
  Result<void> put_staged(const std::string& path) override;
  Result<void> unstage(const std::string& path) override;
  Result<void> clear(const Waits& waits, std::stop_token stop) override;

 private:
  struct Root {
    std::string path;
    Fd directory;
  };
  Result<Root> root_for(const std::string& name) const;
  Result<void> check_disk(const Root& root) const;
  static Result<void> mark(const Root& root);
  void note_staged(const std::string& path, bool is_staged);
  Result<Made> limit(const Fd& directory, const std::string& path, Bytes size);
  Result<void> clear(const std::string& root, const Waits& waits, const std::stop_token& stop);
  Result<std::string> give_up(const std::string& root, const Fd& directory, const std::string& entry, const Waits& waits);
  static Result<std::string> rename_to_removed(const Fd& root, const std::string& from, const std::string& name);
  // The root and the name that a path of ours consists of. Errors: invalid.
  Result<std::pair<std::string, std::string>> parts_of(const std::string& path) const;

  const std::vector<std::string> roots_;
  const Holds holds_;
  const std::string fstab_;
  std::mutex numbers_;            // while a project number is chosen
  std::mutex staging_;            // while it is judged whether what was staged is needed
  std::set<std::string> staged_;  // the paths of volumes for which content is staged now
  struct Clearing {
    bool runs = false, again = false;
  };
  Guarded<Clearing> clearing_;
};

}  // namespace coracle::volume

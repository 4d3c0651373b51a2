// SPDX-License-Identifier: Apache-2.0
// Directories of this machine that are the volumes of claims.
//   <root>/.new_<namespace>_<claim>_<uid>      created, but not in a PersistentVolume yet: it never held data. Or a volume whose
//                                              rename was lost in a power cut
//   <root>/<namespace>_<claim>_<uid>           a volume; only set_aside() removes it, whatever the store contains
//   <root>/.staged_<namespace>_<claim>_<uid>   is being given its quota, or content that will replace a volume's
//   <root>/.removed_<namespace>_<claim>_<uid>… its content is deleted by clear(), also after a restart
//   <root>/.coracle                            marks the disk, so that an empty mount point is not mistaken for it
//   <root>/.coracle.projects/                  see project_numbers.h
// There is no other record on the disk. Each operation checks what exists, so it can be repeated after a crash. A disk that is
// not mounted is never written to, and nothing on it counts as deleted. A disk that hangs holds only the calls that are on it:
// after kPatience, further ones fail with unavailable, until it answers or another one is mounted in its place. Only those that
// end a staging wait: what was copied for hours is not given up because the disk is slow.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "daemon/volume/local/expected_mounts.h"
#include "daemon/volume/local/project_numbers.h"
#include "runtime/base/fd.h"
#include "runtime/base/guarded.h"
#include "runtime/base/result.h"
#include "runtime/base/scope.h"
#include "runtime/base/units.h"
#include "runtime/sys/file.h"
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
    std::string unlimited;                      // why its size is not enforced; "" if the file system enforces it
    std::vector<std::string> passed_over = {};  // the roots that could not be used, each with the reason
  };
  // Creates the claim's directory on the root with the most free space, unless it exists. publish() then gives it the returned
  // path. A root that cannot be used does not matter while there is another. `root`: the only one that may be used; "": any.
  // Blocks for the disk. Errors: unavailable if the disk of no root is mounted; invalid if there is no such root; errors of the
  // file system.
  virtual Result<Made> make(const Key& claim, const std::string& uid, Bytes size, const std::string& root = "") = 0;
  // Call after a PersistentVolume with the path exists. Errors: unavailable if the disk is not mounted.
  virtual Result<void> publish(const std::string& path) = 0;
  // Returns as make() does. Errors: unavailable if the disk is not mounted; not_found.
  virtual Result<Made> set_size(const std::string& path, Bytes size) = 0;
  // Removes the volume's path; clear() deletes its content later. Succeeds if it does not exist on its disk. Errors: invalid if
  // the path is not a volume's; unavailable if the disk is not mounted, or if too many removed directories of it wait for
  // clear(); errors of the file system.
  virtual Result<void> set_aside(const std::string& path) = 0;
  // Whether the place is the volume's directory or is in it, by whatever path: links, "..", bind mounts of the directory or of a
  // part of it. A place on a file server is not, unless the volumes are on one, nor one of a FUSE program that does not show
  // this machine's directories (sshfs). `answers`: returns whether the place can be looked at now; asked before it is opened.
  // Blocks for the disk of the volume. Errors: timeout if the place does not answer; unavailable if a program or a server may
  // show the volume there (bindfs, mergerfs); the place cannot be looked at.
  using Answers = std::function<bool(const std::string& place)>;
  virtual Result<bool> holds(const std::string& path, const std::string& place, const Answers& answers) const = 0;
  // Enforces the volume's size again if somebody has changed its project (project_numbers.h). nullopt: its size is not enforced.
  using Held = ProjectNumbers::Held;
  virtual Result<std::optional<Held>> hold(const std::string& path, Bytes size) = 0;
  // Creates an empty directory beside the volume's, with a quota of its own, for content that will replace the volume's. Removes
  // a previously staged one. Blocks for the disk. Errors: invalid if the path is not a volume's; errors of the file system.
  virtual Result<Fd> stage(const std::string& path, Bytes size) = 0;
  struct Staged {
    std::string path;  // of the volume
    Fd directory;
    std::vector<std::string> passed_over = {};  // as Made's
  };
  // Stages the first content of a volume, instead of make(). nullopt if the directory exists already. Errors: as make()'s.
  virtual Result<std::optional<Staged>> stage_first(const Key& claim, const std::string& uid, Bytes size,
                                                    const std::string& root = "") = 0;
  // Replaces the volume's content by the staged directory, atomically and durably; clear() deletes the old content. A directory
  // of stage_first is then as after make(). Blocks for the disk, however long it takes. Errors: errors of the file system.
  virtual Result<void> put_staged(const std::string& path) = 0;
  // Removes it. Succeeds if there is none. Blocks as put_staged(). After an error clear() removes it.
  virtual Result<void> unstage(const std::string& path) = 0;
  // The roots on which volumes are made.
  virtual const std::vector<std::string>& roots() const = 0;
  // Names the disk that is mounted at the root now: if it hangs, so may every call for this root. Does not look at the disk.
  virtual std::string disk_of(const std::string& root) const = 0;
  // Whether clear() has something to do there. Blocks for the disk.
  virtual bool needs_clearing(const std::string& root) const = 0;
  // Deletes the content of the root's removed volumes, their quotas, and unpublished directories without a claim. `waits`:
  // returns whether the claim or the volume of the directory of this name exists. Blocks until all is deleted, or leaves it to a
  // running call. An error does not stop the deletion of the rest. Errors: cancelled; unavailable if the disk is not mounted; the
  // first one of the file system.
  using Waits = std::function<bool(const std::string& name)>;
  virtual Result<void> clear(const std::string& root, const Waits& waits, std::stop_token stop) = 0;
};

class DiskDirectories : public Directories {
 public:
  // Each root may be on a disk of its own; it is created together with the first volume. Nothing is created on a root without the
  // mark if `holds` returns that a PersistentVolume is on it, or if a mount of it is missing.
  using Holds = std::function<bool(const std::string& root)>;
  static constexpr std::chrono::seconds kPatience{20};
  DiskDirectories(std::vector<std::string> roots, Holds holds, ExpectedMounts expected = {}, ProjectCalls projects = {},
                  std::chrono::nanoseconds patience = kPatience)
      : roots_(std::move(roots)),
        holds_(std::move(holds)),
        expected_(std::move(expected)),
        numbers_(std::move(projects)),
        patience_(patience) {}
  Result<Made> make(const Key& claim, const std::string& uid, Bytes size, const std::string& root = "") override;
  Result<void> publish(const std::string& path) override;
  Result<Made> set_size(const std::string& path, Bytes size) override;
  Result<void> set_aside(const std::string& path) override;
  Result<bool> holds(const std::string& path, const std::string& place, const Answers& answers) const override;
  Result<std::optional<Held>> hold(const std::string& path, Bytes size) override;
  // The use of the directory's project; nullopt if nothing enforces its size. A directory that is not a volume's has the project
  // that it says itself.
  std::optional<sys::ProjectUse> use_of(const std::string& path, const Fd& directory);
  Result<Fd> stage(const std::string& path, Bytes size) override;
  Result<std::optional<Staged>> stage_first(const Key& claim, const std::string& uid, Bytes size,
                                            const std::string& root = "") override;
  Result<void> put_staged(const std::string& path) override;
  Result<void> unstage(const std::string& path) override;
  const std::vector<std::string>& roots() const override { return roots_; }
  std::string disk_of(const std::string& root) const override;
  bool needs_clearing(const std::string& root) const override;
  Result<void> clear(const std::string& root, const Waits& waits, std::stop_token stop) override;

 private:
  struct Root {
    std::string path;
    Fd directory;
    bool has_it = false;  // the directory that is wanted
    Bytes available;
    std::vector<std::string> passed_over = {};  // as Made's
  };
  enum class IfSlow { fail, wait };
  // A call may be on the root's disk until the returned value ends. Blocks while kCallsMax are. Errors, unless it is to wait
  // however long: unavailable once one of them takes longer than `patience_`; this does not block then.
  Result<Scope> begin_call(const std::string& root, IfSlow if_slow = IfSlow::fail) const;
  // With O_PATH, published or not; nullopt: it is not there.
  Result<std::optional<Fd>> open_volume(const std::string& path) const;
  Result<Root> root_for(const std::string& name, const std::string& wanted) const;
  Result<Root> look_at(const std::string& path, const std::string& name, bool is_wanted) const;
  Result<void> check_disk(const std::string& root) const;
  static Result<void> mark(const Root& root);
  static Error absent(const std::string& root);
  void note_staged(const std::string& path, bool is_staged);
  Result<Fd> stage_now(const std::string& path, Bytes size);  // in a call that has begun
  Result<void> unstage_now(const std::string& path);          // the same
  Result<std::string> limit(const Fd& root, const Fd& directory, const std::string& path, Bytes size);
  struct Listed {
    Fd directory;
    std::vector<sys::DirEntry> entries;
  };
  Result<std::optional<Listed>> list(const std::string& root) const;
  Result<void> clear_once(const std::string& root, const Waits& waits, const std::stop_token& stop);
  Result<std::string> give_up(const std::string& root, const Fd& directory, const std::string& entry, const Waits& waits);
  static Result<std::string> rename_to_removed(const Fd& root, const std::string& from, const std::string& name);
  // Splits a volume's path into root and name. Errors: invalid.
  Result<std::pair<std::string, std::string>> parts_of(const std::string& path) const;

  const std::vector<std::string> roots_;
  const Holds holds_;
  const ExpectedMounts expected_;
  ProjectNumbers numbers_;
  const std::chrono::nanoseconds patience_;
  struct Clearing {
    bool runs = false, again = false;
  };
  // Locks are held during calls to the root's disk, so each root has its own: a disk that hangs does not hinder the others. Nor
  // does it hinder the one that is mounted in its place, so each disk of a root has its own as well.
  struct OfRoot {
    Guarded<std::multiset<std::chrono::steady_clock::time_point>> calls;  // when those began that are on the disk now
    std::mutex choosing;                                                  // held while projects are changed
    std::mutex staging;                                                   // held while staged directories are checked for use
    Guarded<Clearing> clearing;
  };
  OfRoot& of(const std::string& root) const;                 // on the disk that is mounted there now
  mutable Guarded<std::map<std::string, OfRoot>> of_roots_;  // by disk
  Guarded<std::set<std::string>> staged_;                    // paths of volumes for which content is being staged
};

}  // namespace coracle::volume

// SPDX-License-Identifier: Apache-2.0
// File functions of the node agent beyond runtime/sys/file.h: watching a directory, copying a process's output, and listing the
// machine's devices. Source: inotify(7), poll(2).
#pragma once

#include <sys/stat.h>

#include <chrono>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"
#include "runtime/oci/spec.h"

namespace coracle::node::files {

// Writes the file in place and keeps its inode, for files that containers have bind-mounted. Does nothing if the text is the
// same. Errors of this and of the next two: errno's.
Result<void> rewrite_file(const std::string& path, std::string_view text, unsigned mode);
// Exactly this mode, regardless of the umask; does not follow symbolic links.
Result<void> set_mode(const std::string& path, unsigned mode);
Result<void> set_owner(const std::string& path, std::optional<uint32_t> uid, std::optional<uint32_t> gid);
std::vector<std::string> list(const std::string& directory);  // the names, sorted; empty if the directory does not exist

// A device at `path` in a container, with the number, mode and owners from `info` (stat(2)).
oci::Device device(std::string path, const struct stat& info);
// The machine's devices, for privileged containers.
std::vector<oci::Device> devices(const std::string& directory = "/dev");

// Waits for changes in a directory. An event only means that the directory must be read again.
class DirectoryWatch {
 public:
  static Result<DirectoryWatch> make();                              // of none yet: see follow(). Errors: errno's
  static Result<DirectoryWatch> open(const std::string& directory);  // Errors: errno's; not_found
  // Watches the directory that has this name now: the one before may have been removed or moved away. Call it before reading the
  // directory; only from the thread that waits. Errors: of open(); then wait() still returns for a change of mounts or wake().
  Result<void> follow(const std::string& directory);
  // Blocks until something has changed, wake() was called, `longest` has elapsed or stop was requested. Returns false for the
  // last two. `mounts`: an open /proc/self/mountinfo; then also until, since it was opened or last waited for, something was
  // mounted or unmounted by which the name leads to another directory: that is no change in the watched one. Source:
  // proc_pid_mounts(5), poll.
  bool wait(std::stop_token stop, std::optional<std::chrono::milliseconds> longest = std::nullopt, const Fd* mounts = nullptr);
  void wake();  // from any thread

 private:
  bool is_there() const;  // the name leads to the watched directory

  Fd inotify_, wake_;
  std::string name_;
  int number_ = -1;                        // of the watch
  std::pair<dev_t, ino_t> watched_{0, 0};  // the watched directory; 0: none yet, or it was removed
};

// Passes the bytes read from `fd` to `out` until end of file, until `out` returns false, or until stop.
void pump(const Fd& fd, const std::function<bool(std::string_view)>& out, std::stop_token stop);
// Passes to `out` what can be read from `fd` without waiting: the content of a pipe at most. Ends when `out` returns false.
void drain(const Fd& fd, const std::function<bool(std::string_view)>& out);
// As pump, for stdout and stderr of a process; either may be missing.
void pump_both(const Fd& out, const Fd& err, const std::function<bool(std::string_view)>& take, std::stop_token stop);
// Writes all bytes. Errors: cancelled; unavailable if the reader has closed its end.
Result<void> write_all(const Fd& fd, std::string_view bytes, std::stop_token stop);

}  // namespace coracle::node::files

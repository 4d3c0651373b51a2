// SPDX-License-Identifier: Apache-2.0
// What the node room does with files beyond runtime/sys/file.h: waiting for changes in a directory, pumping a process's
// output, listing the machine's devices. Source: inotify(7), poll(2).
#pragma once

#include <sys/stat.h>

#include <chrono>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"
#include "runtime/oci/spec.h"

namespace coracle::node::files {

// Writes in place, keeping the inode, for files that containers have bound. Does nothing when the text is there already.
Result<void> rewrite_file(const std::string& path, std::string_view text, unsigned mode);
Result<void> set_mode(const std::string& path, unsigned mode);  // exactly, whatever the umask; not through a link
Result<void> set_owner(const std::string& path, std::optional<uint32_t> uid, std::optional<uint32_t> gid);
std::vector<std::string> list(const std::string& directory);  // names, sorted; none when there is no such directory

// The device at `path` in a container, with number, mode and owners of the device file that `info` is about.
oci::Device device(std::string path, const struct stat& info);
// The machine's devices, for privileged containers.
std::vector<oci::Device> devices(const std::string& directory = "/dev");

// Waits for changes in a directory. Events only say "look again".
class DirectoryWatch {
 public:
  static Result<DirectoryWatch> open(const std::string& directory);
  // Blocks until something has changed, wake() was called, `longest` is over or stop is asked for. False for the last two.
  bool wait(std::stop_token stop, std::optional<std::chrono::milliseconds> longest = std::nullopt);
  void wake();  // from any thread

 private:
  Fd inotify_, wake_;
};

// Hands on what comes from `fd` until its end, until `out` returns false, or stop.
void pump(const Fd& fd, const std::function<bool(std::string_view)>& out, std::stop_token stop);
// The same for a process's two outputs at once; either may be missing.
void pump_both(const Fd& out, const Fd& err, const std::function<bool(std::string_view)>& take, std::stop_token stop);
Result<void> write_all(const Fd& fd, std::string_view bytes,
                       std::stop_token stop);  // Errors: cancelled, unavailable (nobody reads)

}  // namespace coracle::node::files

// SPDX-License-Identifier: Apache-2.0
// Files and directories as tar streams, for cp. A stream from a container is untrusted: names that lead out of the target, writes
// through links, and devices are refused. Source: tar(5), libarchive's archive_write_disk(3).
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace coracle::ctl {

struct Place {                // one side of a cp
  std::string ns, pod, path;  // pod "": the local machine
};

// Takes "POD:PATH", "NAMESPACE/POD:PATH" or a local path. Text that begins with / or . is a path. Errors: bad_request.
Result<Place> parse_place(std::string_view text);
// The directory and the last part of a path in a container: "/a/b/" → "/a", "b"; "x" → ".", "x"; "/" → "/", ".".
std::pair<std::string, std::string> split_path(std::string_view path);

// Writes the tree at `path` as a tar archive in which `path` is called `name`. Blocks on `fd`.
Result<void> send_tree(const std::string& path, const std::string& name, int fd);
// Unpacks a tar archive from `fd` into `target`, which replaces the first component of each name. Writes nothing outside it.
// Errors: forbidden for a name or link that leads out of it; not_found for an empty archive.
Result<void> receive_tree(int fd, const std::string& target, bool keep_modes);

}  // namespace coracle::ctl

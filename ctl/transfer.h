// SPDX-License-Identifier: Apache-2.0
// Files and directories as tar streams, for cp. What comes from a container is hostile: names that lead out of the target,
// links written through, devices are refused. Source: tar(5), libarchive's archive_write_disk(3).
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace coracle::ctl {

struct Place {                // one side of a cp
  std::string ns, pod, path;  // pod "" = this machine
};

// "POD:PATH", "NAMESPACE/POD:PATH" or a path; what begins with / or . is a path. Errors: bad_request.
Result<Place> parse_place(std::string_view text);
// The directory and the last part of a path in a container: "/a/b/" → "/a", "b"; "x" → ".", "x"; "/" → "/", ".".
std::pair<std::string, std::string> split_path(std::string_view path);

// Writes `path`, and what is below it, as a tar whose names begin with `name` instead. Blocks on `fd`.
Result<void> send_tree(const std::string& path, const std::string& name, int fd);
// Unpacks a tar from `fd`: the first part of every name is replaced by `target`. Nothing is written elsewhere. Errors:
// forbidden for a name or link that leads out; not_found when the stream held nothing.
Result<void> receive_tree(int fd, const std::string& target, bool keep_modes);

}  // namespace coracle::ctl

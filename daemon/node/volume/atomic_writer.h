// SPDX-License-Identifier: Apache-2.0
// Writes a set of small files to a directory atomically: a reader sees either all old or all new files. The files are in a
// directory named by time. The symbolic link "..data" points to it and is replaced by rename. The visible names are links through
// "..data".
//   volume/key → ..data/key,  volume/..data → ..2026_01_02_…/
// Source: Kubernetes ConfigMap and Secret volumes (programs rely on this layout).
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "runtime/base/clock.h"
#include "runtime/base/result.h"

namespace coracle::node {

struct PayloadFile {
  std::string content;
  unsigned mode = 0644;
  std::optional<uint32_t> uid;
  bool operator==(const PayloadFile&) const = default;
};
using Payload = std::map<std::string, PayloadFile>;  // by path relative to the volume

// Makes `directory` show exactly `payload`, whose group is `gid`. Returns whether anything had to change. `first_id`: what
// the host has for the readers' id 0; their ids count from there. `others`: names in it that are not the payload's and stay.
// Directories stay, too: a subPath that named nothing is one. An empty one gives way to a file of its name.
// Errors: invalid for a path that would leave the directory or touch our own names.
Result<bool> write_payload(const std::string& directory, const Payload& payload, std::optional<uint32_t> gid, WallTime now,
                           uint32_t first_id = 0, const std::set<std::string>& others = {});

// The content of `path` as it is visible now. Errors: not_found.
Result<std::string> shown_file(const std::string& directory, const std::string& path);

}  // namespace coracle::node

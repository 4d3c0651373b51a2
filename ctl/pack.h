// SPDX-License-Identifier: Apache-2.0
// Packs a directory as an image: an OCI archive with one layer.
// Source: opencontainers/image-spec image-layout.md, layer.md, config.md.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"

namespace coracle::ctl {

struct ImageConfig {
  std::vector<std::string> entrypoint, cmd, env;  // env: NAME=VALUE
  std::string user, working_dir;
};

// Writes the archive to `archive`. All entries are owned by root, sorted, and have no access times, so that the same directory
// gives the same digests. Errors: errno's; invalid for a malformed image name.
Result<void> pack_directory(const std::string& directory, const std::string& name, const ImageConfig& config, const Fd& archive);

}  // namespace coracle::ctl

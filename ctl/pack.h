// SPDX-License-Identifier: Apache-2.0
// A directory as an image: an OCI archive with one layer, made with libarchive and nothing else.
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

// Writes the archive to `archive`. Owners are written as root's, entries sorted and without times of access, so that the same
// directory gives the same digests. Errors: errno's; invalid for a name that is none.
Result<void> pack_directory(const std::string& directory, const std::string& name, const ImageConfig& config, const Fd& archive);

}  // namespace coracle::ctl

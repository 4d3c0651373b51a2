// SPDX-License-Identifier: Apache-2.0
// A bundle as the runtime's own specs: config.json of a directory becomes a sandbox with one container in it.
// Source: opencontainers/runtime-spec bundle.md.
#pragma once

#include <string>

#include "runtime/runtime.h"

namespace coracle::cli {

constexpr const char* kContainer = "c";  // the only one of its sandbox

struct Bundle {
  runtime::SandboxSpec sandbox;
  runtime::ContainerSpec container;
};

// Errors: not_found, invalid with the field.
Result<Bundle> load_bundle(const std::string& directory, const std::string& id);

// A sandbox's id for a container's: those may hold more than a sandbox's may.
std::string sandbox_id(const std::string& id);
bool is_valid_id(const std::string& id);  // [a-zA-Z0-9_+.-]+, no ".."

}  // namespace coracle::cli

// SPDX-License-Identifier: Apache-2.0
// Reads YAML documents into Nodes. Anchors and merge keys are expanded, and comments are dropped. libyaml parses.
// Pure. Source: YAML 1.2 with YAML 1.1's merge keys, as kustomize's library reads it.
#pragma once

#include <string_view>
#include <vector>

#include "ctl/kustomize/node.h"

namespace coracle::kustomize {

constexpr size_t kTextNodesMax = 1'000'000;  // of a text

// All documents; empty ones are skipped. `lines`, if given, receives the first line of each. Errors: bad_request, with the line,
// also for a key that occurs twice or is not text; too_large.
Result<std::vector<Node>> read_documents(std::string_view text, std::vector<size_t>* lines = nullptr);

}  // namespace coracle::kustomize

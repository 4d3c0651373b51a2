// SPDX-License-Identifier: Apache-2.0
// Writes YAML as `kubectl kustomize` does: keys in natural order (a9 before a10), lines broken after 80 characters where that
// changes nothing, and quotes where YAML 1.1 needs them. libyaml writes. Pure. Source: sigs.k8s.io/yaml.
#pragma once

#include "ctl/kustomize/node.h"

namespace coracle::kustomize {

std::string write_json(const json::value& value);
// The keys stay in their order, and texts quoted that were. For a document within a text.
std::string write_node(const Node& node);

// One line of text between these quotes, or without if it needs none.
std::string write_scalar(const std::string& text, char quote);

}  // namespace coracle::kustomize

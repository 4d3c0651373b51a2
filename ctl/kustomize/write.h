// SPDX-License-Identifier: Apache-2.0
// Writes YAML that stands in a text of a resource: keys stay in their order, and lines are not broken. What a kustomization
// prints is written by to_yaml(). Pure.
#pragma once

#include "ctl/kustomize/node.h"

namespace coracle::kustomize {

// A document; texts are quoted that were.
std::string write_node(const Node& node);

// One line of text between these quotes, or without if it needs none.
std::string write_scalar(const std::string& text, char quote);

}  // namespace coracle::kustomize

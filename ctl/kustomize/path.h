// SPDX-License-Identifier: Apache-2.0
// Field paths of replacements and vars: "spec.template.spec.containers.[name=web].image", "spec.rules.0.host",
// "metadata.annotations.[example.com/a.b]", "spec.hosts.*". Pure. Source: kustomize's kyaml PathGetter and PathMatcher.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ctl/kustomize/node.h"

namespace coracle::kustomize {

std::vector<std::string> split_path(std::string_view path);

// The value at a path; nullptr if it is absent. An item in brackets has to have just that value. Errors: invalid for a path that
// does not fit the object.
Result<Node*> lookup(Node& object, const std::vector<std::string>& path);

struct Creates {
  bool creates = false;
  Node::Kind kind = Node::Kind::scalar;  // of the last part
};

// All values at a path: * is every item, and the value in brackets is a regular expression. Missing parts are created if asked
// for. The pointers are valid until the object changes. Errors: invalid.
Result<std::vector<Node*>> match(Node& object, const std::vector<std::string>& path, const Creates& creates);

}  // namespace coracle::kustomize

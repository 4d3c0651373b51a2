// SPDX-License-Identifier: Apache-2.0
// Strategic merge patches as kustomize applies them: null removes a field, items that a patch adds to a merging list come first,
// and $patch: delete, replace or merge is obeyed. (The API's own strategic merge, store/schema/merge.h, differs in all three
// details, and in what it knows about $retainKeys.) Pure. Source: kustomize's kyaml/yaml/merge2 and walk.
#pragma once

#include <optional>

#include "ctl/kustomize/schema.h"

namespace coracle::kustomize {

// Merges `patch` into `object`, which is nothing afterwards if the patch deletes it. Errors: invalid, with the path, for a patch
// with another type of value than the object, and for an unknown directive.
Result<std::optional<Node>> strategic_merge(Node object, const Node& patch, const OpenApi& schemas);

}  // namespace coracle::kustomize

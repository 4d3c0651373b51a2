// SPDX-License-Identifier: Apache-2.0
// Replacements: a field of one object is copied to fields of others. Pure. Source: kustomize's replacement filter.
#pragma once

#include "ctl/kustomize/settings.h"

namespace coracle::kustomize {

// Errors: not_found if the source or a target's field is absent; conflict for several sources; invalid; too_large.
Result<void> apply_replacements(Resources& resources, const std::vector<ReplacementArgs>& replacements);

}  // namespace coracle::kustomize

// SPDX-License-Identifier: Apache-2.0
// Name references: fields that hold the name of another object of the kustomization follow when that is renamed. Pure.
// Source: kustomize's nameref filter.
#pragma once

#include "ctl/kustomize/fields.h"
#include "ctl/kustomize/resource.h"

namespace coracle::kustomize {

// Errors: conflict if a name may mean several objects, which have different names now.
Result<void> fix_name_references(Resources& resources, const std::vector<NameReference>& references);

}  // namespace coracle::kustomize

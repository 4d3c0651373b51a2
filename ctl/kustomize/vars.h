// SPDX-License-Identifier: Apache-2.0
// Vars: $(NAME) in certain fields becomes the value of a field of another object. Source: kustomize's refvar filter. Pure.
#pragma once

#include "ctl/kustomize/settings.h"

namespace coracle::kustomize {

// Notes in the objects which vars refer to them, by the names that they have now, and adds the vars to `all`. Errors: conflict
// for a name that is there already, and for several objects that match.
Result<void> add_vars(Resources& resources, const std::vector<VarArgs>& vars, std::map<std::string, VarArgs>& all);

// Replaces the vars. `unused` receives the names of those that no field has. Errors: not_found for a var without an object or
// field.
Result<void> resolve_vars(Resources& resources, const std::map<std::string, VarArgs>& vars, const FieldSpecs& fields,
                          std::vector<std::string>& unused);

}  // namespace coracle::kustomize

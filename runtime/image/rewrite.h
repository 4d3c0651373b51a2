// SPDX-License-Identifier: Apache-2.0
// The names of repositories on mirrors: see runtime::RegistryRewrite. Pure. Source: k3s, registries.yaml; regex(7).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/runtime.h"

namespace coracle::image {

// Errors: invalid, with the reason why the pattern is none.
Result<void> check_rewrite(const runtime::RegistryRewrite& rewrite);
// Those of a registry, otherwise those of "*".
const std::vector<runtime::RegistryRewrite>& rewrites_of(const std::map<std::string, std::vector<runtime::RegistryRewrite>>& all,
                                                         const std::string& registry);
// The name by the first rewrite that changes it; otherwise `repository`. A pattern that is none changes nothing.
std::string rewrite_repository(const std::string& repository, const std::vector<runtime::RegistryRewrite>& rewrites);

}  // namespace coracle::image

// SPDX-License-Identifier: Apache-2.0
// AppArmor from the outside: whether the kernel enforces it, which profiles it knows, and loading one. Putting a process under a
// profile is runtime/launch's. Source: apparmor(7), apparmor_parser(8); securityfs' apparmor/profiles.
#pragma once

#include <string>

#include "runtime/base/result.h"

namespace coracle::sys {

bool is_apparmor_enabled();
// Whether the kernel knows the profile. Errors: securityfs cannot be read.
Result<bool> is_apparmor_profile_loaded(const std::string& profile);
// Compiles the text and puts it into the kernel in the place of what has its name. Blocks. Errors: not_found without
// apparmor_parser; invalid when that refuses the text.
Result<void> load_apparmor_profile(const std::string& text);

}  // namespace coracle::sys

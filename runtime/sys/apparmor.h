// SPDX-License-Identifier: Apache-2.0
// AppArmor on the host: whether the kernel enforces it, which profiles are loaded, and loading one. runtime/launch applies a
// profile to a process. Source: apparmor(7), apparmor_parser(8); securityfs' apparmor/profiles.
#pragma once

#include <string>

#include "runtime/base/result.h"

namespace coracle::sys {

bool is_apparmor_enabled();
// True if the kernel has the profile loaded. Errors: securityfs cannot be read.
Result<bool> is_apparmor_profile_loaded(const std::string& profile);
// Compiles the profile and loads it into the kernel, replacing a profile of the same name. Blocks. Errors: not_found without
// apparmor_parser; invalid if it rejects the text.
Result<void> load_apparmor_profile(const std::string& text);

}  // namespace coracle::sys

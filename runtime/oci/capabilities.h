// SPDX-License-Identifier: Apache-2.0
// Capabilities as bit sets, by the specification's names ("CAP_NET_RAW"). Source: capabilities(7); names from libcap, so that the
// machine's own list counts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/result.h"

namespace coracle::oci {

std::optional<int> capability_number(const std::string& name);
Result<uint64_t> capability_set(const std::vector<std::string>& names);  // Errors: invalid, with the name
std::vector<std::string> all_capabilities();                             // those that this machine's libcap supports

}  // namespace coracle::oci

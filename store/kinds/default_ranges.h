// SPDX-License-Identifier: Apache-2.0
// The ranges of addresses and ports that apply unless the configuration has others. Those of Kubernetes' installers.
#pragma once

#include <cstdint>

namespace coracle::kinds {

inline constexpr const char* kDefaultPodCidr = "10.244.0.0/24";     // of one node
inline constexpr const char* kDefaultServiceCidr = "10.96.0.0/16";  // of all Services
inline constexpr const char* kDefaultDnsAddress = "10.96.0.10";     // inside kDefaultServiceCidr
inline constexpr uint16_t kDefaultNodePortFirst = 30000, kDefaultNodePortLast = 32767;

}  // namespace coracle::kinds

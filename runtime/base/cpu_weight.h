// SPDX-License-Identifier: Apache-2.0
// CPU weights of cgroups: converts CPU shares, which Kubernetes and OCI use, to the cpu.weight of cgroup v2. Pure.
#pragma once

#include <cstdint>

namespace coracle {

inline constexpr uint64_t kCpuWeightMax = 10000;

// The cpu.weight (1 to 10000) for cgroup v1 shares (2 to 262144); 0 stays 0, "not set". The curve passes through (2, 1), (1024,
// 100) and (262144, 10000): the minimum, the default and the maximum of both. The linear conversion used before gave 1024 shares
// a weight of 39, less than the default of any other cgroup on the machine. Source: runc 1.3.2 and kubelet 1.35, "new conversion
// from cgroup v1 CPU shares to v2 CPU weight".
uint64_t weight_of_shares(uint64_t shares);

}  // namespace coracle

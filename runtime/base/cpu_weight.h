// SPDX-License-Identifier: Apache-2.0
// CPU time among cgroups: shares, as Kubernetes and the OCI count it, and the weight that cgroup v2 knows. Pure.
#pragma once

#include <cstdint>

namespace coracle {

inline constexpr uint64_t kCpuWeightMax = 10000;

// cpu.weight (1 to 10000) for the shares of v1 (2 to 262144); 0 stays 0, "not set". Through (2, 1), (1024, 100) and
// (262144, 10000): the smallest, the default and the largest of both. The straight line between the ends that was in use
// before gave 1024 shares a weight of 39, less than any cgroup of the machine's own that nobody configured.
// Source: runc 1.3.2 and kubelet 1.35, "new conversion from cgroup v1 CPU shares to v2 CPU weight".
uint64_t weight_of_shares(uint64_t shares);

}  // namespace coracle

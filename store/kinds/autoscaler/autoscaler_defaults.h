// SPDX-License-Identifier: Apache-2.0
// The default target of an autoscaler without metrics, in both versions of the kind.
// Source: Kubernetes pkg/apis/autoscaling, DefaultCPUUtilization.
#pragma once

#include <cstdint>

namespace coracle::schema {

constexpr int64_t kCpuUtilizationPercent = 80;  // percent of the pods' requests

}  // namespace coracle::schema

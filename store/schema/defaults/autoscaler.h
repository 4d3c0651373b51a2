// SPDX-License-Identifier: Apache-2.0
// What an autoscaler that names no metric aims at, in both versions of the kind.
// Source: Kubernetes pkg/apis/autoscaling, DefaultCPUUtilization.
#pragma once

#include <cstdint>

namespace coracle::schema {

constexpr int64_t kCpuUtilizationPercent = 80;  // of what the pods ask for

}  // namespace coracle::schema

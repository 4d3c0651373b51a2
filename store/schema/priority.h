// SPDX-License-Identifier: Apache-2.0
// The built-in priority classes, which cannot be changed. Source: Kubernetes pkg/apis/scheduling (SystemPriorityClasses).
#pragma once

#include <cstdint>
#include <string_view>

namespace coracle::schema {

struct SystemClass {
  std::string_view name;
  int64_t value;
  std::string_view description;
};
constexpr int64_t kSystemClusterCritical = 2'000'000'000;  // the lower of the two
constexpr int64_t kSystemNodeCritical = 2'000'001'000;
constexpr SystemClass kSystemClasses[] = {
    {"system-node-critical", kSystemNodeCritical,
     "Used for system critical pods that must not be moved from their current node."},
    {"system-cluster-critical", kSystemClusterCritical,
     "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary."}};

}  // namespace coracle::schema

// SPDX-License-Identifier: Apache-2.0
// Resource sums of the scheduler: fields for the three common resources, the others by name. Pure. Units: cpu in millicores, all
// others in their base unit (bytes, pieces). Source: Kubernetes "Resource Management for Pods and Containers", "Pod Overhead",
// sidecar containers, pod-level resources (KEP-2837), in-place resize (KEP-1287).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "store/schema/views.h"

namespace coracle::scheduler {

class Amounts {
 public:
  int64_t cpu_milli = 0, memory = 0, ephemeral = 0;

  static Amounts of(const json::object& quantities);  // unreadable quantities count as 0
  int64_t get(std::string_view name) const;
  void set(std::string_view name, int64_t amount);
  bool has(std::string_view name) const;  // of the other resources: whether it is present
  bool is_zero() const;
  Amounts& operator+=(const Amounts& other);
  Amounts& operator-=(const Amounts& other);
  void add_own(const Amounts& other);   // as +=, but only those other resources that this already has
  void raise_to(const Amounts& other);  // sets each amount to the larger of both
  bool operator==(const Amounts&) const = default;

  using Other = std::pair<std::string, int64_t>;
  const std::vector<Other>& others() const& { return others_; }  // sorted by name
  void others() && = delete;                                     // it would refer to a temporary

 private:
  // Calls f(own amount, other amount) for each resource of `other`; absent ones count as 0. Takes time in proportion to the sum
  // of both lengths.
  void combine(const Amounts& other, int64_t (*f)(int64_t, int64_t));

  std::vector<Other> others_;  // extended resources, huge pages and others: few in most pods
};

// The request assumed in scores for a container without requests, so that such pods are spread too.
inline constexpr int64_t kDefaultCpuMilli = 100, kDefaultMemoryBytes = int64_t(200) << 20;

struct PodRequests {
  Amounts exact;                                    // for filters
  int64_t scored_cpu_milli = 0, scored_memory = 0;  // with the defaults for containers without requests
};

// The requests of a pod: the sum of its containers, or the need of an init container at its turn, or the pod-level requests, plus
// the overhead. During a resize, the larger of desired and allocated resources.
PodRequests requests_of(const view::Pod& pod);

// "1500m", "2", "4Gi": for people.
std::string amount_text(std::string_view resource, int64_t amount);

}  // namespace coracle::scheduler

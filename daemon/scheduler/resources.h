// SPDX-License-Identifier: Apache-2.0
// Resources as the scheduler adds them up: three that everybody asks for stand by themselves, the others by name. Pure.
// Units: cpu in millicores, everything else in its own (bytes, pieces).
// Source: Kubernetes "Resource Management for Pods and Containers", "Pod Overhead", sidecar containers, pod-level resources
// (KEP-2837), in-place resize (KEP-1287).
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

  static Amounts of(const json::object& quantities);  // what cannot be read counts as 0
  int64_t get(std::string_view name) const;
  void set(std::string_view name, int64_t amount);
  bool has(std::string_view name) const;  // of the others: whether it is named at all
  bool asks_for_nothing() const;
  Amounts& operator+=(const Amounts& other);
  Amounts& operator-=(const Amounts& other);
  void add_own(const Amounts& other);   // as +=, but of the others only those that this names already
  void raise_to(const Amounts& other);  // the larger of each
  bool operator==(const Amounts&) const = default;

  using Other = std::pair<std::string, int64_t>;
  const std::vector<Other>& others() const& { return others_; }  // sorted by name
  void others() && = delete;                                     // what it would refer to is about to go

 private:
  // With f(own amount, the other's amount) for each of the other's; absent ones count as 0. Takes time by the sum of both
  // lengths.
  void combine(const Amounts& other, int64_t (*f)(int64_t, int64_t));

  std::vector<Other> others_;  // extended resources, huge pages and other amounts: few in most pods
};

// What a container counts for in scores when it asks for nothing, so that such pods are spread too.
inline constexpr int64_t kDefaultCpuMilli = 100, kDefaultMemoryBytes = int64_t(200) << 20;

struct PodRequests {
  Amounts exact;                                    // what filters go by
  int64_t scored_cpu_milli = 0, scored_memory = 0;  // with the defaults for containers that ask for nothing
};

// What a pod asks for: the sum of its containers, or what an init container needs at its turn, what the pod as a whole asks for,
// and the overhead. While a resize is under way, the larger of what is wanted and what is held.
PodRequests requests_of(const view::Pod& pod);

// "1500m", "2", "4Gi": for people.
std::string amount_text(std::string_view resource, int64_t amount);

}  // namespace coracle::scheduler

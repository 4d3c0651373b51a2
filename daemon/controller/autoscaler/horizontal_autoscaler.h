// SPDX-License-Identifier: Apache-2.0
// The pure part of the autoscaler: the number of pods that a metric calls for, and the number that is allowed now.
//   metrics ─▶ proposal of each ─▶ the largest ─▶ stabilized ─▶ limited by rate, minReplicas and maxReplicas
// Pods without reliable data count so that the number changes least. A pod without metrics counts as using nothing for scaling
// up; for scaling down it counts as using its request, or its target if that is larger. A pod that is not ready counts as using
// nothing for scaling up and is ignored otherwise. Amounts are in thousandths, as in Kubernetes. Source: Kubernetes "Horizontal
// Pod Autoscaling" (algorithm details, configurable scaling behavior); KEP-853, KEP-4951.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/controller/shared/common.h"

namespace coracle::controller {

constexpr std::chrono::seconds kAutoscalerPeriod{15}, kDownscaleWindow{300};
constexpr std::chrono::seconds kInitialReadinessDelay{30}, kCpuInitializationPeriod{300};
constexpr double kAutoscalerTolerance = 0.1;

// ---- proposals of metrics ----

int64_t milli_value_of(const json::value& quantity);  // 0 if it is not a quantity

struct PodMetric {
  int64_t value = 0;
  WallTime at;                         // end of the measured window
  std::chrono::nanoseconds window{0};  // length of the window
};
using PodMetrics = std::map<std::string, PodMetric>;  // by pod name

struct Tolerance {  // how far the ratio of usage to target may differ from 1
  double up = kAutoscalerTolerance, down = kAutoscalerTolerance;
  bool covers(double ratio) const;
};

struct Target {                 // the scale target in its current state
  int64_t wanted = 0;           // spec.replicas of its scale
  int64_t there = 0;            // status.replicas
  std::vector<ObjectPtr> pods;  // pods that its selector matches
  Tolerance tolerance;
  WallTime now;
};

struct Proposal {
  int64_t replicas = 0;
  int64_t amount = 0;                  // the measured value: the average per pod, or the total
  std::optional<int64_t> utilization;  // percent of the pods' requests
};

// The request of each pod for the resource; with `container`, of that container only. Errors: invalid, with the name of a pod or
// container without a request.
Result<std::map<std::string, int64_t>> pod_requests(const std::vector<ObjectPtr>& pods, std::string_view resource,
                                                    std::string_view container);

// Target: `percent` of the pods' requests. `is_cpu`: samples of starting pods are ignored. Errors: no pods, no metrics.
Result<Proposal> propose_by_utilization(const Target& target, PodMetrics metrics, const std::map<std::string, int64_t>& requests,
                                        int64_t percent, bool is_cpu);
// Target: an amount per pod. Errors: as above.
Result<Proposal> propose_by_average(const Target& target, PodMetrics metrics, int64_t amount, bool is_cpu);
// For a metric that does not belong to pods; target: a total amount. Errors: no pods.
Result<Proposal> propose_by_value(const Target& target, int64_t measured, int64_t amount);
// The same; target: an amount per pod.
Proposal propose_per_pod(const Target& target, int64_t measured, int64_t amount);

// ---- limits ----

struct ScalingPolicy {
  bool percent = false;
  int64_t value = 0;
  std::chrono::seconds period{0};
};

struct ScalingRules {
  enum class Select : uint8_t { max, min, disabled };  // selectPolicy
  Select select = Select::max;
  std::vector<ScalingPolicy> policies;
  std::chrono::seconds window{0};
};

struct Behavior {
  ScalingRules up, down;
};

// spec.behavior; nullopt if absent: then the only limits are kDownscaleWindow and a doubling per step (or up to 4 pods).
std::optional<Behavior> behavior_of(const json::value& autoscaler);
Tolerance tolerance_of(const json::value& autoscaler);

// The history of one autoscaler. It is bounded by the longest window and period that a behavior may have.
struct AutoscalerPast {
  struct Entry {
    SteadyTime at;
    int64_t replicas;
  };
  std::vector<Entry> advice;      // earlier proposals
  std::vector<Entry> ups, downs;  // by how many pods the number was changed
};

struct Decision {
  int64_t replicas = 0;
  Condition able, limited;
};

struct Limits {
  int64_t current = 0, min = 1, max = 1;
};

// Limits the proposal `proposed` and adds it to the history.
Decision decide_replicas(AutoscalerPast& past, const std::optional<Behavior>& behavior, const Limits& limits, int64_t proposed,
                         SteadyTime now);
void remember_change(AutoscalerPast& past, int64_t from, int64_t to, SteadyTime now);

// ---- status ----

// Whether the metrics in `now` are equal to `before` within a fiftieth of their targets. Measured values always differ a little,
// and such a difference is not worth a write.
bool same_measurement(const json::array& before, const json::array& now, const json::array& metrics);

}  // namespace coracle::controller

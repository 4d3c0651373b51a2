// SPDX-License-Identifier: Apache-2.0
// The pure part of the autoscaler: how many pods a metric asks for, and what of that is allowed now.
//   metrics ─▶ proposal of each ─▶ the largest ─▶ stabilised ─▶ limited by rate, minReplicas and maxReplicas
// Whoever cannot be seen well counts so that the number changes least: a pod without metrics uses nothing when more pods are
// asked for and all it may when fewer are; a pod that is not ready uses nothing when more are asked for, else it does not count.
// Amounts are thousandths, as Kubernetes counts them. Source: Kubernetes "Horizontal Pod Autoscaling" (algorithm details,
// configurable scaling behavior); KEP-853, KEP-4951.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/controller/common.h"

namespace coracle::controller {

constexpr std::chrono::seconds kAutoscalerPeriod{15}, kDownscaleWindow{300};
constexpr std::chrono::seconds kInitialReadinessDelay{30}, kCpuInitializationPeriod{300};
constexpr double kAutoscalerTolerance = 0.1;

// ---- how many pods a metric asks for ----

int64_t milli_value_of(const json::value& quantity);  // 0 where it is none

struct PodMetric {
  int64_t value = 0;
  WallTime at;                         // the end of the span that was measured
  std::chrono::nanoseconds window{0};  // and how long it was
};
using PodMetrics = std::map<std::string, PodMetric>;  // by the pod's name

struct Tolerance {  // by how much a ratio of use to target may miss 1
  double up = kAutoscalerTolerance, down = kAutoscalerTolerance;
  bool covers(double ratio) const;
};

struct Target {                 // what is scaled, as it is now
  int64_t wanted = 0;           // spec.replicas of its scale
  int64_t there = 0;            // status.replicas
  std::vector<ObjectPtr> pods;  // that its selector matches
  Tolerance tolerance;
  WallTime now;
};

struct Proposal {
  int64_t replicas = 0;
  int64_t amount = 0;                  // what was measured: of each pod on average, or the value itself
  std::optional<int64_t> utilization;  // percent of what the pods ask for
};

// What each pod asks for of the resource; with `container`, that one alone. Errors: invalid, naming who does not say.
Result<std::map<std::string, int64_t>> pod_requests(const std::vector<ObjectPtr>& pods, std::string_view resource,
                                                    std::string_view container);

// `percent` of what the pods ask for. `is_cpu`: samples of pods that are starting do not count. Errors: no pods, no metrics.
Result<Proposal> propose_by_utilization(const Target& target, PodMetrics metrics, const std::map<std::string, int64_t>& requests,
                                        int64_t percent, bool is_cpu);
// An amount for each pod. Errors: as above.
Result<Proposal> propose_by_average(const Target& target, PodMetrics metrics, int64_t amount, bool is_cpu);
// Of something that is not the pods': an amount in all. Errors: no pods.
Result<Proposal> propose_by_value(const Target& target, int64_t measured, int64_t amount);
// The same, an amount for each pod.
Proposal propose_per_pod(const Target& target, int64_t measured, int64_t amount);

// ---- what is allowed now ----

struct ScalingPolicy {
  bool percent = false;
  int64_t value = 0;
  std::chrono::seconds period{0};
};

struct ScalingRules {
  enum class Select : uint8_t { max, min, disabled };  // change
  Select select = Select::max;
  std::vector<ScalingPolicy> policies;
  std::chrono::seconds window{0};
};

struct Behavior {
  ScalingRules up, down;
};

// spec.behavior; nothing where it is not given: then only kDownscaleWindow and a doubling at a time (or to 4) hold.
std::optional<Behavior> behavior_of(const json::value& autoscaler);
Tolerance tolerance_of(const json::value& autoscaler);

// What is remembered of one autoscaler between looks; bounded by the longest window and period that a behaviour may have.
struct AutoscalerPast {
  struct Entry {
    SteadyTime at;
    int64_t replicas;
  };
  std::vector<Entry> advice;      // what metrics asked for
  std::vector<Entry> ups, downs;  // by how many pods the number was changed
};

struct Decision {
  int64_t replicas = 0;
  Condition able, limited;
};

struct Limits {
  int64_t current = 0, min = 1, max = 1;
};

// What becomes of the advice `proposed`, which is remembered.
Decision decide_replicas(AutoscalerPast& past, const std::optional<Behavior>& behavior, const Limits& limits, int64_t proposed,
                         SteadyTime now);
void remember_change(AutoscalerPast& past, int64_t from, int64_t to, SteadyTime now);

// ---- status ----

// Whether a reader learns nothing from `now` that `before` does not say: the same metrics, each within a fiftieth of its target.
// What is measured is never twice the same, and none of it is worth a write.
bool same_measurement(const json::array& before, const json::array& now, const json::array& metrics);

}  // namespace coracle::controller

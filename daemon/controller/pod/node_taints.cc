// SPDX-License-Identifier: Apache-2.0
// Taints from conditions, and the eviction rate. Pure. See node_lifecycle.h.
#include <algorithm>
#include <array>

#include "daemon/controller/pod/node_lifecycle.h"
#include "store/object/object.h"
#include "store/schema/views.h"

namespace coracle::controller {
namespace {

constexpr std::string_view kUnschedulableTaint = "node.kubernetes.io/unschedulable";
constexpr int kLargeZone = 50;                  // --large-cluster-size-threshold
constexpr double kUnhealthyShare = 0.55;        // --unhealthy-zone-threshold
constexpr std::chrono::seconds kPace{10};       // --node-eviction-rate 0.1
constexpr std::chrono::seconds kSlowPace{100};  // --secondary-node-eviction-rate 0.01

struct ConditionTaint {
  std::string_view condition, status, taint;
};
constexpr std::array kConditionTaints = {ConditionTaint{"Ready", "False", kNotReadyTaint},
                                         ConditionTaint{"Ready", "Unknown", kUnreachableTaint},
                                         ConditionTaint{"MemoryPressure", "True", "node.kubernetes.io/memory-pressure"},
                                         ConditionTaint{"DiskPressure", "True", "node.kubernetes.io/disk-pressure"},
                                         ConditionTaint{"PIDPressure", "True", "node.kubernetes.io/pid-pressure"},
                                         ConditionTaint{"NetworkUnavailable", "True", "node.kubernetes.io/network-unavailable"}};

using Taint = std::pair<std::string_view, std::string_view>;  // key, effect

Taint taint_of(view::Taint taint) { return {taint.key(), taint.effect()}; }

bool is_of_conditions(const Taint& taint) {
  auto is_key = [&](const ConditionTaint& cause) { return cause.taint == taint.first; };
  if (taint.second == "NoExecute") return taint.first == kNotReadyTaint || taint.first == kUnreachableTaint;
  return taint.second == "NoSchedule" &&
         (taint.first == kUnschedulableTaint || std::any_of(kConditionTaints.begin(), kConditionTaints.end(), is_key));
}

}  // namespace

std::string_view node_condition(const Object& node, std::string_view type) {
  for (view::NodeCondition condition : view::Node(node).status().conditions())
    if (condition.type() == type) return condition.status();
  return {};
}

json::array wanted_taints(const Object& node, bool may_empty, WallTime now) {
  view::Range<view::Taint> there = view::Node(node).spec().taints();
  auto has = [&](const Taint& taint) {
    return std::any_of(there.begin(), there.end(), [&](view::Taint one) { return taint_of(one) == taint; });
  };
  std::vector<Taint> wanted;
  std::string_view ready = node_condition(node, "Ready");
  if (ready.empty() && has({kNotReadyTaint, "NoSchedule"})) wanted.emplace_back(kNotReadyTaint, "NoSchedule");
  for (const ConditionTaint& cause : kConditionTaints)
    if (node_condition(node, cause.condition) == cause.status) wanted.emplace_back(cause.taint, "NoSchedule");
  if (view::Node(node).spec().unschedulable()) wanted.emplace_back(kUnschedulableTaint, "NoSchedule");
  // While a node is being evicted, another NoExecute taint replaces the present one without a wait.
  bool emptying = has({kNotReadyTaint, "NoExecute"}) || has({kUnreachableTaint, "NoExecute"});
  if (may_empty || emptying) {
    if (ready == "False") wanted.emplace_back(kNotReadyTaint, "NoExecute");
    if (ready == "Unknown") wanted.emplace_back(kUnreachableTaint, "NoExecute");
  }
  json::array taints;
  for (view::Taint taint : there)
    if (!is_of_conditions(taint_of(taint)) || std::find(wanted.begin(), wanted.end(), taint_of(taint)) != wanted.end())
      taints.push_back(taint.raw());
  for (const Taint& taint : wanted)
    if (!has(taint)) taints.push_back({{"key", taint.first}, {"effect", taint.second}, {"timeAdded", format_time(now)}});
  return taints;
}

std::optional<std::chrono::seconds> pace_of(ZoneCount zone) {
  int all = zone.ready + zone.not_ready;
  // A zone without any ready node is evicted at the normal rate: other zones have capacity.
  bool most = zone.ready > 0 && zone.not_ready > 2 && zone.not_ready >= kUnhealthyShare * all;
  if (!most) return kPace;
  if (all > kLargeZone) return kSlowPace;
  return std::nullopt;
}

}  // namespace coracle::controller

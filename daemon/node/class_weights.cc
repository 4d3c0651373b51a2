// SPDX-License-Identifier: Apache-2.0
// See class_weights.h.
#include "daemon/node/class_weights.h"

#include <algorithm>

#include "runtime/base/cpu_weight.h"
#include "runtime/base/log.h"

namespace coracle::node {

void ClassWeights::note(const std::string& uid, const json::value& pod) {
  const QosClass qos = qos_of(pod);
  const int64_t shares = cpu_shares_of(pod);
  state_.with([&](State& state) {
    Share& known = state.pods[uid];
    known = {qos, shares};
    level(state);
  });
}

void ClassWeights::forget(const std::string& uid) {
  state_.with([&](State& state) {
    if (state.pods.erase(uid) > 0) level(state);
  });
}

void ClassWeights::level(State& state) {
  std::map<QosClass, uint64_t> wanted{{QosClass::best_effort, 1}};
  int64_t burstable = 0;
  for (const auto& [uid, share] : state.pods) {
    if (share.qos == QosClass::burstable) burstable += share.cpu_shares;
    if (share.qos == QosClass::guaranteed) wanted[share.qos] += weight_of_shares(uint64_t(share.cpu_shares));
  }
  wanted[QosClass::burstable] = std::max<uint64_t>(weight_of_shares(uint64_t(burstable)), 1);
  for (auto& [qos, weight] : wanted) {
    weight = std::clamp<uint64_t>(weight, 1, kCpuWeightMax);
    auto known = state.weights.find(qos);
    if (known != state.weights.end() && known->second == weight) continue;
    state.weights[qos] = weight;
    if (auto set = runtime_.set_class_weight(qos_name(qos), weight); !set)
      log_warning("node", "cpu weight of class " + std::string(qos_name(qos)) + ": " + set.error().text());
  }
}

}  // namespace coracle::node

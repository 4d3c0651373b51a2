// SPDX-License-Identifier: Apache-2.0
// See meter.h.
#include "daemon/node/meter.h"

#include <algorithm>

namespace coracle::node {

std::map<std::string, Sample> Meter::measure(const std::vector<Gauge>& gauges) {
  std::lock_guard lock(measuring_);
  forget_old();
  std::map<std::string, Sample> out;
  std::vector<const Gauge*> cold;
  for (const Gauge& gauge : gauges) {
    auto sample = sample_of(gauge, true);
    if (sample) out.emplace(gauge.id, *sample);
    else if (looks_.contains(gauge.id)) cold.push_back(&gauge);
  }
  if (cold.empty()) return out;
  pause_(kWindowMin);
  for (const Gauge* gauge : cold)
    if (auto sample = sample_of(*gauge, false)) out.emplace(gauge->id, *sample);
  return out;
}

// nullopt: the counter cannot be read, and no reading is stored; or there was no earlier reading, and this one is stored.
std::optional<Sample> Meter::sample_of(const Gauge& gauge, bool may_be_fresh) {
  auto known = looks_.find(gauge.id);
  SteadyTime now = clock_.steady();
  if (may_be_fresh && known != looks_.end() && known->second.sample && now - known->second.at < kFresh)
    return known->second.sample;
  auto reading = gauge.read();
  if (!reading) {
    looks_.erase(gauge.id);
    return std::nullopt;
  }
  std::optional<Look> before;
  if (known != looks_.end()) before = known->second;
  else if (gauge.age && *gauge.age >= kWindowMin && *gauge.age <= kWindowMax) before = Look{now - *gauge.age, {}, {}};
  Look look{now, reading->cpu, std::nullopt};
  if (before && now > before->at) {
    auto window = std::chrono::nanoseconds(now - before->at);
    auto used = std::max(reading->cpu - before->cpu, std::chrono::nanoseconds(0));
    int64_t nanocores = int64_t(double(used.count()) / double(window.count()) * 1e9);
    look.sample = Sample{clock_.now(), window, nanocores, reading->memory};
  }
  looks_[gauge.id] = look;
  return look.sample;
}

void Meter::forget_old() {
  SteadyTime now = clock_.steady();
  std::erase_if(looks_, [&](const auto& entry) { return now - entry.second.at > kWindowMax; });
}

}  // namespace coracle::node

// SPDX-License-Identifier: Apache-2.0
// Shares: the seats of each priority level: from its shares and, for lendable and borrowed seats, from its recent demand. Pure.
//   shares ──▶ nominal, lower and upper limit        demand over the last period ──▶ the limit of the next one
// Source: Kubernetes "API Priority and Fairness", KEP-1040; apiserver util/flowcontrol.
#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include "runtime/base/clock.h"

namespace coracle::flowcontrol {

constexpr std::chrono::seconds kAdjustmentPeriod{10};  // interval of adjusting limits to demand
constexpr double kDemandSmoothing = 0.977;             // weight of older, higher demand after one period

struct ShareSettings {
  bool exempt = false;
  int shares = 0, lendable_percent = 0;
  std::optional<int> borrowing_percent;  // unset: no limit of borrowing
};

struct SeatLimits {
  int nominal = 0, lower = 0, upper = 0;
};
// One element per level, in order. `seats`: of the whole server.
std::vector<SeatLimits> seat_limits(const std::vector<ShareSettings>& levels, int seats);

// The demand of a level since the last reset: seats in use and waited for, over time.
class SeatDemand {
 public:
  explicit SeatDemand(SteadyTime now) : since_(now), last_(now) {}
  void set(int seats, SteadyTime now);
  // Computes the figures below from this period and begins a new one.
  void close_period(SteadyTime now);

  int high_watermark = 0;
  double average = 0, deviation = 0;
  double smoothed = 0;  // rises at once, falls slowly

 private:
  SteadyTime since_, last_;
  int seats_ = 0, highest_ = 0;
  double integral_ = 0, integral_of_squares_ = 0;  // over seconds
};

// The inputs of one level for the new limits.
struct Claim {
  bool exempt = false;
  SeatLimits limits;
  int high_watermark = 0;
  double smoothed = 0;
};
struct SeatAllocation {
  std::vector<int> seats;       // one per claim, in order
  std::vector<double> targets;  // 0 for exempt levels
  double fair_fraction = 0;     // the fraction of its target that a level gets if no limit applies
};
SeatAllocation allocate_seats(const std::vector<Claim>& claims);

}  // namespace coracle::flowcontrol

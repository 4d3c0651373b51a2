// SPDX-License-Identifier: Apache-2.0
// Shares: how many of the server's seats each priority level has: by its share, and, of what levels may lend and borrow, by what
// they asked for lately. Pure.
//   shares ──▶ nominal, lower and upper limit        demand over the last period ──▶ the limit of the next one
// Source: Kubernetes "API Priority and Fairness", KEP-1040; apiserver util/flowcontrol.
#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include "runtime/base/clock.h"

namespace coracle::fairness {

constexpr std::chrono::seconds kAdjustmentPeriod{10};  // how often limits follow demand
constexpr double kDemandSmoothing = 0.977;             // how much of an older, higher demand is still believed after a period

struct ShareSettings {
  bool exempt = false;
  int shares = 0, lendable_percent = 0;
  std::optional<int> borrowing_percent;  // unset: all that the others lend
};

struct SeatLimits {
  int nominal = 0, lower = 0, upper = 0;
};
// One for each level, in order. `seats`: the whole server's.
std::vector<SeatLimits> seat_limits(const std::vector<ShareSettings>& levels, int seats);

// What a level asked for since the last reset: seats in use and waited for, over time.
class Demand {
 public:
  explicit Demand(SteadyTime now) : since_(now), last_(now) {}
  void set(int seats, SteadyTime now);
  // Takes what was seen into the figures below and begins anew.
  void close_period(SteadyTime now);

  int high_watermark = 0;
  double average = 0, deviation = 0;
  double smoothed = 0;  // rises at once, falls slowly

 private:
  SteadyTime since_, last_;
  int seats_ = 0, highest_ = 0;
  double integral_ = 0, integral_of_squares_ = 0;  // over seconds
};

// What limits are made of, for one level.
struct Claim {
  bool exempt = false;
  SeatLimits limits;
  int high_watermark = 0;
  double smoothed = 0;
};
struct Allotment {
  std::vector<int> seats;       // one for each claim, in order
  std::vector<double> targets;  // 0 for exempt levels
  double fair_fraction = 0;     // of its target, what a level gets that meets no limit
};
Allotment allot(const std::vector<Claim>& claims);

}  // namespace coracle::fairness

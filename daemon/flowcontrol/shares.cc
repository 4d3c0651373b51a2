// SPDX-License-Identifier: Apache-2.0
// See shares.h.
#include "daemon/flowcontrol/shares.h"

#include <algorithm>
#include <cmath>

namespace coracle::flowcontrol {
namespace {

constexpr double kTargetMin = 0.001;

struct Bounds {
  double target, lower, upper;
};

// The fraction of their targets at which all levels together have `sum`, each within its bounds. The sum grows with the fraction,
// so bisection finds it.
double fraction_for(const std::vector<Bounds>& all, double sum) {
  auto together = [&](double fraction) {
    double out = 0;
    for (const Bounds& one : all) out += std::clamp(fraction * one.target, one.lower, one.upper);
    return out;
  };
  double low = 0, high = 0;
  for (const Bounds& one : all) high = std::max(high, one.upper / one.target);
  if (together(high) <= sum) return high;
  for (int halvings = 0; halvings < 100; halvings++) {
    double middle = (low + high) / 2;
    (together(middle) < sum ? low : high) = middle;
  }
  return high;
}

}  // namespace

std::vector<SeatLimits> seat_limits(const std::vector<ShareSettings>& levels, int seats) {
  double sum = 0;
  for (const ShareSettings& level : levels) sum += level.shares;
  std::vector<SeatLimits> out;
  for (const ShareSettings& level : levels) {
    SeatLimits limits;
    // Rounded up, so their sum may exceed `seats`.
    if (sum > 0) limits.nominal = int(std::ceil(double(seats) * level.shares / sum));
    auto part = [&](int percent) { return int(std::lround(double(limits.nominal) * percent / 100)); };
    limits.lower = limits.nominal - part(level.lendable_percent);
    limits.upper = limits.nominal + (level.borrowing_percent ? part(*level.borrowing_percent) : seats);
    out.push_back(limits);
  }
  return out;
}

void SeatDemand::set(int seats, SteadyTime now) {
  double passed = std::chrono::duration<double>(now - last_).count();
  last_ = now;
  integral_ += seats_ * passed;
  integral_of_squares_ += double(seats_) * seats_ * passed;
  seats_ = seats;
  highest_ = std::max(highest_, seats);
}

void SeatDemand::close_period(SteadyTime now) {
  set(seats_, now);
  high_watermark = highest_;
  double span = std::chrono::duration<double>(now - since_).count();
  if (span > 0) {
    average = integral_ / span;
    deviation = std::sqrt(std::max(0.0, integral_of_squares_ / span - average * average));
    // Without requests, several periods may have passed since the last adjustment.
    double kept = std::pow(kDemandSmoothing, std::max(1.0, std::floor(span / double(kAdjustmentPeriod.count()))));
    double envelope = average + deviation;
    smoothed = std::max(envelope, kept * smoothed + (1 - kept) * envelope);
  }
  since_ = now;
  highest_ = seats_;
  integral_ = integral_of_squares_ = 0;
}

SeatAllocation allocate_seats(const std::vector<Claim>& claims) {
  SeatAllocation out;
  std::vector<Bounds> bounds;
  int all = 0, lowest = 0, asked = 0;
  for (const Claim& claim : claims) all += claim.limits.nominal;
  int left = all;
  for (const Claim& claim : claims) {
    if (claim.exempt) {
      left -= std::max(claim.limits.lower, claim.high_watermark);
      continue;
    }
    int floor = std::max(claim.limits.lower, std::min(claim.limits.nominal, claim.high_watermark));
    bounds.push_back({std::max({double(floor), claim.smoothed, kTargetMin}), double(floor), double(claim.limits.upper)});
    lowest += claim.limits.lower, asked += floor;
  }
  bool scarce = left <= asked;  // not even the demand within the nominal limits is available
  if (!scarce) out.fair_fraction = fraction_for(bounds, left);
  double part = scarce && left > lowest && asked > lowest ? double(left - lowest) / (asked - lowest) : 0;
  auto next = bounds.begin();
  for (const Claim& claim : claims) {
    if (claim.exempt) {
      out.seats.push_back(std::max(claim.limits.lower, claim.high_watermark));
      out.targets.push_back(0);
      continue;
    }
    const Bounds& one = *next++;
    double seats = scarce ? claim.limits.lower + std::round((one.lower - claim.limits.lower) * part)
                          : std::clamp(out.fair_fraction * one.target, one.lower, one.upper);
    out.seats.push_back(int(std::lround(seats)));
    out.targets.push_back(one.target);
  }
  return out;
}

}  // namespace coracle::flowcontrol

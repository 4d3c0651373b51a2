// SPDX-License-Identifier: Apache-2.0
// Meter: rates of CPU time counters, measured on request only; there is no periodic work. A rate needs two readings of a counter.
// The later one is taken now. The earlier one is, for each counter,
//   the reading of the previous request, if it is no older than kWindowMax (an autoscaler that asks every 15 s gets averages
//     over 15 s without waiting);
//   the counter's start, if it is no older than that: the counter was zero;
//   otherwise a reading taken now; all such counters wait for kWindowMin together.
// A request within kFresh gets the previous sample. Every sample contains the length of its window. One reading per counter is
// kept, for kWindowMax. Thread-safe: measurements run one after the other.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/result.h"
#include "runtime/base/units.h"

namespace coracle::node {

struct Reading {
  std::chrono::nanoseconds cpu{0};  // total so far
  Bytes memory;                     // current
};

struct Gauge {
  std::string id;                               // identifies the counter for its lifetime
  std::optional<std::chrono::nanoseconds> age;  // since the counter was zero; nullopt: not known
  std::function<Result<Reading>()> read;
};

struct Sample {
  WallTime at;                         // time of the later reading
  std::chrono::nanoseconds window{0};  // time since the earlier reading
  int64_t nanocores = 0;               // billionths of a CPU, average over the window
  Bytes memory;                        // at the later reading
};

class Meter {
 public:
  static constexpr std::chrono::seconds kFresh{5}, kWindowMin{1}, kWindowMax{60};

  // `pause` blocks its caller for the given time.
  Meter(const Clock& clock, std::function<void(std::chrono::nanoseconds)> pause) : clock_(clock), pause_(std::move(pause)) {}

  // Samples by id, without counters that cannot be read. May block for kWindowMin.
  std::map<std::string, Sample> measure(const std::vector<Gauge>& gauges);

 private:
  struct Look {
    SteadyTime at;
    std::chrono::nanoseconds cpu{0};
    std::optional<Sample> sample;  // the sample that ended with this reading
  };
  std::optional<Sample> sample_of(const Gauge& gauge, bool may_be_fresh);
  void forget_old();

  const Clock& clock_;
  const std::function<void(std::chrono::nanoseconds)> pause_;
  std::mutex measuring_;  // held during a measurement
  std::map<std::string, Look> looks_;
};

}  // namespace coracle::node

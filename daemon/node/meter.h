// SPDX-License-Identifier: Apache-2.0
// Meter: how fast counters of cpu time run, found out when somebody asks and never otherwise: nothing here ticks. A rate
// needs two looks at a counter. The later one is now; the earlier one is, counter by counter,
//   the look of the last time that somebody asked, when that was no longer ago than kWindowMax (an autoscaler that asks
//     every 15 s gets averages over 15 s, and nobody waits);
//   its beginning, when it began no longer ago than that: it stood at zero;
//   else one taken now, and all who lack one wait for kWindowMin together.
// Who asks again within kFresh is given the sample of before. Every sample says over which span it was taken. What is
// remembered is one look per counter, for kWindowMax. Thread-safe: requests measure one after the other.
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
  std::chrono::nanoseconds cpu{0};  // used up to now
  Bytes memory;                     // held now
};

struct Gauge {
  std::string id;                               // of the counter, for as long as it lives
  std::optional<std::chrono::nanoseconds> age;  // since it stood at zero; nothing: not known
  std::function<Result<Reading>()> read;
};

struct Sample {
  WallTime at;                         // the later look
  std::chrono::nanoseconds window{0};  // since the earlier one
  int64_t nanocores = 0;               // billionths of a CPU, on average
  Bytes memory;                        // at the later look
};

class Meter {
 public:
  static constexpr std::chrono::seconds kFresh{5}, kWindowMin{1}, kWindowMax{60};

  // `pause` blocks its caller for the span given.
  Meter(const Clock& clock, std::function<void(std::chrono::nanoseconds)> pause) : clock_(clock), pause_(std::move(pause)) {}

  // By id. What cannot be read is not among them. May block for kWindowMin.
  std::map<std::string, Sample> measure(const std::vector<Gauge>& gauges);

 private:
  struct Look {
    SteadyTime at;
    std::chrono::nanoseconds cpu{0};
    std::optional<Sample> sample;  // that this look ended
  };
  std::optional<Sample> sample_of(const Gauge& gauge, bool may_be_fresh);
  void forget_old();

  const Clock& clock_;
  const std::function<void(std::chrono::nanoseconds)> pause_;
  std::mutex turn_;  // held by who measures
  std::map<std::string, Look> looks_;
};

}  // namespace coracle::node

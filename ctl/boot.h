// SPDX-License-Identifier: Apache-2.0
// boot: the timeline of this machine's last start: firmware, kernel, first process, coracled, its API, each pod. Times are since
// the kernel's start, by a clock that never jumps; the API's times are converted, also those from before the wall clock was set.
// Pure but for the command itself. Source: systemd's org.freedesktop.systemd1(5) (…TimestampMonotonic), systemd-analyze(1).
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/json.h"

namespace coracle::ctl {

using SinceKernel = std::chrono::microseconds;

struct BootState {
  std::string manager;  // `systemctl show`: lines NAME=value, with --timestamp=unix; "": systemd does not run here
  std::string unit;     // the same of coracled.service
  json::value pods;     // a list; null: not readable
  WallTime now;
  SinceKernel uptime{0};
};

struct BootStep {
  std::optional<SinceKernel> at;  // nullopt: it has not come, or its time is not known; negative: before the kernel
  std::string what;
  std::string waited_for;         // ""
  bool is_whole_seconds = false;  // rounded down
};

// The steps by their time; what has not come stands last.
std::vector<BootStep> boot_steps(const BootState& state);
std::string print_boot(const std::vector<BootStep>& steps);
json::value boot_json(const std::vector<BootStep>& steps);

}  // namespace coracle::ctl

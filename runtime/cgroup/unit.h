// SPDX-License-Identifier: Apache-2.0
// The properties of a container's scope for systemd: its slice, its process, and those of its limits that systemd has properties
// for, so that it keeps them when it rewrites its units' cgroups. Pure; bus.h sends them.
//
//   memory.max low min high swap.max   MemoryMax, MemoryLow, …       cpuset.cpus, mems   AllowedCPUs, AllowedMemoryNodes
//   cpu.weight, cpu.idle               CPUWeight; 0 = idle           pids.max            TasksMax
//   cpu.max                            CPUQuotaPerSecUSec, -PeriodUSec                   io.weight           IOWeight
// Source: systemd.resource-control(5), org.freedesktop.systemd1(5); runc docs/systemd.md for the annotations.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/cgroup/place.h"
#include "runtime/cgroup/settings.h"

namespace coracle::cgroup {

struct Property {
  // On the bus: b, i, u, x, t, s, as, ay, au.
  using Value = std::variant<bool, int32_t, uint32_t, int64_t, uint64_t, std::string, std::vector<std::string>,
                             std::vector<uint8_t>, std::vector<uint32_t>>;
  std::string name;
  Value value;
  bool is_optional = false;  // may be left out for a systemd that does not support it: we write the limit to the cgroup as well
  bool operator==(const Property&) const = default;
};

// The properties for well-formed limits. Other values are left to the kernel.
std::vector<Property> limit_properties(const std::vector<Setting>& settings);

constexpr const char* kPropertyPrefix = "org.systemd.property.";
// One annotation: "TimeoutStopUSec", "uint64 123"; "CollectMode", "'inactive-or-failed'"; "TimeoutStopSec", "5".
// Errors: invalid, with the annotation.
Result<Property> parse_property(const std::string& name, const std::string& text);

// All properties of the scope. Errors: invalid for an annotation; forbidden for one that would override the configuration.
Result<std::vector<Property>> scope_properties(const Place& place, int pid, const std::string& description,
                                               const std::vector<Setting>& settings,
                                               const std::map<std::string, std::string>& annotations);

}  // namespace coracle::cgroup

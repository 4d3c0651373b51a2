// SPDX-License-Identifier: Apache-2.0
// What systemd is told of a container's scope: its place, its process, and those of its limits for which systemd has
// words, so that it keeps them when it writes its units' cgroups anew. Pure; bus.h carries it over.
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
  bool is_optional = false;  // a systemd that does not know it is not told: we write it as well
  bool operator==(const Property&) const = default;
};

// Of a limit that is one of the machine's own types, and well-formed; the kernel judges the others.
std::vector<Property> limit_properties(const std::vector<Setting>& settings);

constexpr const char* kPropertyPrefix = "org.systemd.property.";
// One annotation: "TimeoutStopUSec", "uint64 123"; "CollectMode", "'inactive-or-failed'"; "TimeoutStopSec", "5".
// Errors: invalid, with the annotation.
Result<Property> parse_property(const std::string& name, const std::string& text);

// All that makes the scope. Errors: invalid, an annotation.
Result<std::vector<Property>> scope_properties(const Place& place, int pid, const std::string& description,
                                               const std::vector<Setting>& settings,
                                               const std::map<std::string, std::string>& annotations);

}  // namespace coracle::cgroup

// SPDX-License-Identifier: Apache-2.0
// All statistics of a cgroup, for `coracle-oci events --stats` (whose JSON is runc's) and for callers that need more than
// usage(). The part of a missing controller stays empty. Source: cgroup-v2.rst, the *.stat, *.current, *.peak, *.max, *.events
// and *.pressure files; runc's types/events.go for the names.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/fd.h"
#include "runtime/base/json.h"
#include "runtime/base/result.h"
#include "runtime/cgroup/hierarchy.h"

namespace coracle::cgroup {

struct PressureLine {
  double avg10 = 0, avg60 = 0, avg300 = 0;  // percent of the time
  uint64_t total_us = 0;
};
struct Pressure {
  PressureLine some, full;
};

struct CpuStats {
  uint64_t usage_ns = 0, user_ns = 0, system_ns = 0;
  uint64_t periods = 0, throttled_periods = 0, throttled_ns = 0;
  uint64_t bursts = 0, burst_ns = 0;
  std::optional<Pressure> pressure;
};
struct MemoryUse {
  uint64_t current = 0, limit = 0, peak = 0, failures = 0;  // bytes; limit: or kUnlimited; failures: times at the limit
};
struct MemoryStats {
  MemoryUse memory, swap;                // swap without memory; zero if it is not accounted
  std::map<std::string, uint64_t> stat;  // the lines of memory.stat
  uint64_t oom_kills = 0;
  std::optional<Pressure> pressure;
};
struct IoEntry {
  uint64_t major = 0, minor = 0;
  std::string op;  // "Read", "Write", "Discard"
  uint64_t value = 0;
};
struct IoStats {
  std::vector<IoEntry> bytes, operations;
  std::optional<Pressure> pressure;
};
struct RdmaUse {
  std::map<std::string, uint64_t> hca_handles, hca_objects;  // by device; kUnlimited = max
};

struct Stats {
  CpuStats cpu;
  MemoryStats memory;
  uint64_t pids = 0, pids_limit = 0;  // kUnlimited = max; 0 if there is no pids controller
  IoStats io;
  std::map<std::string, MemoryUse> hugepages;  // by size: "2MB"
  RdmaUse rdma_current, rdma_limit;
  std::map<std::string, MemoryUse> misc;
  std::vector<uint16_t> cpus, mems;  // the effective ones
};

// `v1`: the counterparts in cgroup v1, by controller; they provide the statistics that `cgroup` does not have.
Result<Stats> read_stats(const Fd& cgroup, const std::map<std::string, const Fd*>& v1 = {});
// The member "data" of runc's event of type "stats". Pure.
json::object to_json(const Stats& stats);

}  // namespace coracle::cgroup

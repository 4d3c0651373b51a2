// SPDX-License-Identifier: Apache-2.0
// The resources of config.json, which speak of cgroup v1, as the files of cgroup v2 and what to write to them. Pure; see
// container.h and pods.h for who writes. What v2 has no counterpart for is refused when it asks for something that would
// be lost, and taken when it asks for what v2 does anyway.
//
//   memory.limit            memory.max                   -1 = max
//   memory.swap             memory.swap.max              what exceeds the limit, as v1 counted memory and swap together
//   memory.reservation      memory.low
//   cpu.shares              cpu.weight                   weight_of_shares(), runtime/base/cpu_weight.h
//   cpu.quota, period       cpu.max                      quota <= 0 = max
//   cpu.burst, idle         cpu.max.burst, cpu.idle
//   cpu.cpus, mems          cpuset.cpus, cpuset.mems
//   pids.limit              pids.max                     -1 = max, 0 = 1: none beside the first
//   blockIO.weight          io.bfq.weight, or io.weight  10…1000 as it is, or stretched to 1…10000
//   blockIO.throttle…       io.max                       one line for each device
//   hugepageLimits          hugetlb.<size>.max, .rsvd.max
//   rdma                    rdma.max                     one line for each device
//   unified                 as they are; win over what was converted
// Source: runtime-spec config-linux.md "Control groups"; kernel Documentation/admin-guide/cgroup-v2.rst.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/oci/spec.h"

namespace coracle::cgroup {

struct Setting {
  std::string file, value;  // "memory.max", "1048576"
  std::string field;        // of config.json: "linux.resources.memory.limit"
  // Written instead where `file` is not there: io.weight for io.bfq.weight. Empty: nothing takes its place.
  std::string other_file, other_value;
  // The limit holds without this file as well, where the kernel does not have it: no swap is counted, for instance.
  bool may_be_absent = false;
  bool operator==(const Setting&) const = default;
};

// What has changed its meaning since, in the terms of the newest specification: before 1.3, a pids.limit of 0 was none, as
// engines of that time write it where they are asked for none. `oci_version` as in config.json; "" is before. Pure.
oci::Resources of_version(oci::Resources resources, const std::string& oci_version);
// In the order in which they are to be written. Errors: invalid, with the field; unsupported, with the field, for what
// cgroup v2 cannot do.
Result<std::vector<Setting>> settings(const oci::Resources& resources);

// Whether it holds anyway, so that nothing is lost where it cannot be written: "max", no swap where there is none.
bool asks_for_nothing(const Setting& setting);
// "memory" of "memory.max"; "cgroup" for the core's own files.
std::string controller_of(const std::string& file);

// io.weight (1 to 10000) for the weight of blkio and BFQ (10 to 1000).
uint64_t io_weight_of(uint16_t weight);

}  // namespace coracle::cgroup

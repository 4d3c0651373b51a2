// SPDX-License-Identifier: Apache-2.0
// Converts the resources of config.json, which use the terms of cgroup v1, to files of cgroup v2 and their values. Pure;
// container.h and pods.h write them. A setting without a counterpart in v2 is an error if ignoring it would lose something, and
// is accepted if it requests what v2 does anyway.
//
//   memory.limit            memory.max                   -1 = max
//   memory.swap             memory.swap.max              minus the limit: v1 counts memory and swap together
//   memory.reservation      memory.low
//   cpu.shares              cpu.weight                   weight_of_shares(), runtime/base/cpu_weight.h
//   cpu.quota, period       cpu.max                      quota <= 0 = max
//   cpu.burst, idle         cpu.max.burst, cpu.idle
//   cpu.cpus, mems          cpuset.cpus, cpuset.mems
//   pids.limit              pids.max                     -1 = max, 0 = 1: only the first process
//   blockIO.weight          io.bfq.weight, or io.weight  10…1000 unchanged, or scaled to 1…10000
//   blockIO.throttle…       io.max                       one line per device
//   hugepageLimits          hugetlb.<size>.max, .rsvd.max
//   rdma                    rdma.max                     one line per device
//   unified                 unchanged; overrides converted settings
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
  // Written instead if `file` does not exist: io.weight for io.bfq.weight. Empty: there is no alternative.
  std::string other_file, other_value;
  // If the kernel does not have the file, the limit holds anyway: for instance, swap is not accounted.
  bool may_be_absent = false;
  bool operator==(const Setting&) const = default;
};

// Converts resources of an older specification to the meaning of the newest: before 1.3, a pids.limit of 0 meant no limit, and
// engines wrote it for that. `oci_version` as in config.json; "" counts as older. Pure.
oci::Resources of_version(oci::Resources resources, const std::string& oci_version);
// The settings in the order in which to write them. Errors: invalid or, for what cgroup v2 cannot do, unsupported; both with the
// field.
Result<std::vector<Setting>> settings(const oci::Resources& resources);

// True if the setting requests what holds anyway, so that nothing is lost if it cannot be written: "max", or no swap without swap
// accounting.
bool is_no_op(const Setting& setting);
// "memory" for "memory.max"; "cgroup" for the core files.
std::string controller_of(const std::string& file);

// The io.weight (1 to 10000) for a weight of blkio and BFQ (10 to 1000).
uint64_t io_weight_of(uint16_t weight);

}  // namespace coracle::cgroup

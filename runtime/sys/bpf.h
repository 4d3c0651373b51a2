// SPDX-License-Identifier: Apache-2.0
// The device filter of cgroup v2: a BPF program that is asked whenever a process of the cgroup opens or makes a device.
// Source: kernel Documentation/admin-guide/cgroup-v2.rst "Device controller"; bpf(2); linux/bpf.h.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/base/fd.h"
#include "runtime/base/result.h"

namespace coracle::sys {

struct DeviceMatch {
  bool allow = false;
  char type = 'a';                       // 'a' both, 'b' block, 'c' character
  std::optional<uint32_t> major, minor;  // absent = any
  bool read = true, write = true, make = true;
};

constexpr size_t kDeviceRulesMax = 256;

// The last rule that matches decides; what matches none is refused. Pure.
std::vector<uint64_t> device_program(const std::vector<DeviceMatch>& rules);
Result<Fd> load_device_program(const std::vector<uint64_t>& instructions);
Result<void> attach_device_program(const Fd& cgroup, const Fd& program);

}  // namespace coracle::sys

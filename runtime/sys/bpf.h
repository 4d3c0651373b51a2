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

// Each of what is asked (reading, writing, making) is decided by the last rule that speaks of it for this device, and
// refused where none does; all must be allowed. So "r" and "w" of two rules are "rw", as in cgroup v1. Pure.
std::vector<uint64_t> device_program(const std::vector<DeviceMatch>& rules);
Result<Fd> load_device_program(const std::vector<uint64_t>& instructions);
// Beside what others (systemd) have attached: all must allow.
Result<void> attach_device_program(const Fd& cgroup, const Fd& program);
// In the place of the one of ours that is attached to `cgroup`, at once; attached where there is none.
Result<void> replace_device_program(const Fd& cgroup, const Fd& program);

}  // namespace coracle::sys

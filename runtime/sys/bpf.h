// SPDX-License-Identifier: Apache-2.0
// The device controller of cgroup v2: a BPF program that runs whenever a process of the cgroup opens or creates a device node.
// Errors: errno's. Source: kernel Documentation/admin-guide/cgroup-v2.rst "Device controller"; bpf(2); linux/bpf.h.
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

// Compiles the rules. Each requested access (read, write, mknod) is decided by the last rule for this device that mentions it,
// and denied if there is none. All requested accesses must be allowed. So an "r" rule and a "w" rule together allow "rw", as in
// cgroup v1. Pure.
std::vector<uint64_t> device_program(const std::vector<DeviceMatch>& rules);
Result<Fd> load_device_program(const std::vector<uint64_t>& instructions);
// Attaches the program in addition to those of others (systemd): a device access needs the permission of all.
Result<void> attach_device_program(const Fd& cgroup, const Fd& program);
// Atomically replaces our program that is attached to `cgroup`, or attaches this one if there is none.
Result<void> replace_device_program(const Fd& cgroup, const Fd& program);

}  // namespace coracle::sys

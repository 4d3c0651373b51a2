// SPDX-License-Identifier: Apache-2.0
// What the daemon asks of the machine it starts on: its name, its address, and mounts for volumes that must not reach a disk.
#pragma once

#include <string>

#include "runtime/base/result.h"
#include "runtime/base/units.h"

namespace coracle {

// The host's name as Kubernetes names nodes: lower case, a DNS-1123 subdomain. Errors: invalid when it cannot be one.
Result<std::string> host_name();

// The IPv4 address by which others reach this machine: that of the default route's link, else the first global one that is
// not ours (links named coracle…), else 127.0.0.1: a machine without a network is one that works by itself.
Result<std::string> host_address();
// Whether the numeric address is one of this machine's, or stands for all of them.
Result<bool> has_address(const std::string& address);

// Mounts a tmpfs on an existing directory, unless it is one already. `size` 0: half of the memory.
Result<void> mount_tmpfs(const std::string& directory, Bytes size, unsigned mode);
// Lazily; succeeds when nothing is mounted there.
Result<void> unmount(const std::string& directory);

}  // namespace coracle

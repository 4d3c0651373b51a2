// SPDX-License-Identifier: Apache-2.0
// What the daemon asks of the machine it starts on: its name, its address, and mounts for volumes that must not reach a disk.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/result.h"
#include "runtime/base/units.h"

namespace coracle {

// The host's name as Kubernetes names nodes: lower case, a DNS-1123 subdomain. Errors: invalid when it cannot be one.
Result<std::string> host_name();

// The name of this machine's node, of which the host's name says `host`: that under which the machine registered first, since its
// pods are bound to it, whatever the host has been called since. `nodes`: Node objects. `machine_id`: of /etc/machine-id; "" is
// nobody's.
std::string node_name_of(const std::vector<json::value>& nodes, std::string_view machine_id, const std::string& host);

// The IPv4 address by which others reach this machine: that of the default route's link, else the first global one that is
// not ours (links named coracle…), else 127.0.0.1: a machine without a network is one that works by itself.
Result<std::string> host_address();
// Whether the numeric address is one of this machine's, or stands for all of them.
Result<bool> has_address(const std::string& address);

// Mounts a tmpfs on an existing directory, unless it is one already. `size` 0: half of the memory.
Result<void> mount_tmpfs(const std::string& directory, Bytes size, unsigned mode);
// The same with a hugetlbfs of pages of `page_size`, which takes no more than `size`. Errors: what the kernel says of a size that
// it does not have.
Result<void> mount_huge_pages(const std::string& directory, Bytes page_size, Bytes size, unsigned mode);
// Lazily, all that is mounted there; succeeds when nothing is.
Result<void> unmount(const std::string& directory);

// The name of the AppArmor profile that RuntimeDefault means, which the kernel knows from then on. Blocks while it is compiled,
// once after each start of the machine. Errors: as sys::load_apparmor_profile.
Result<std::string> load_default_apparmor();

}  // namespace coracle

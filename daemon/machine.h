// SPDX-License-Identifier: Apache-2.0
// Functions for the machine: its name, its address, its node's name, mounts for volumes in memory, and AppArmor.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/result.h"
#include "runtime/base/units.h"

namespace coracle {

// The host name as a node name: lower case, a DNS-1123 subdomain. Errors: invalid if it cannot be one.
Result<std::string> host_name();

// The name of this machine's node: the one with which the machine first registered, because pods are bound to it, even if the
// host was renamed; otherwise `host`. `nodes`: Node objects. `machine_id`: of /etc/machine-id; "" matches no node.
std::string node_name_of(const std::vector<json::value>& nodes, std::string_view machine_id, const std::string& host);

// The IPv4 address of this machine for others: that of the default route's interface, else the first global one that is not on an
// interface of the daemon (coracle…), else 127.0.0.1, because a machine may have no network.
// Errors: the kernel's.
Result<std::string> host_address();
// Whether the numeric address is an address of this machine or the unspecified address. Errors: the kernel's.
Result<bool> has_address(const std::string& address);

// Mounts a tmpfs on an existing directory, unless one is mounted there. `size` 0: half of the memory.
// `mode`: of its root. Errors: the kernel's.
Result<void> mount_tmpfs(const std::string& directory, Bytes size, unsigned mode);
// Mounts a hugetlbfs with pages of `page_size` and at most `size` bytes. Errors: the kernel's, for an unsupported page size.
Result<void> mount_huge_pages(const std::string& directory, Bytes page_size, Bytes size, unsigned mode);
// Detaches all mounts on the directory (MNT_DETACH); succeeds if there are none. Errors: the kernel's.
Result<void> unmount(const std::string& directory);
// The same of all mounts below the directory.
Result<void> unmount_below(const std::string& directory);

// Loads the AppArmor profile of type RuntimeDefault and returns its name. Blocks while it is compiled, once per boot. Errors: as
// sys::load_apparmor_profile.
Result<std::string> load_default_apparmor();

}  // namespace coracle

// SPDX-License-Identifier: Apache-2.0
// MachineListeners: reads the ports at which the machine's processes listen, and which of them are its own: root's, or at a port
// where nobody listens without root's leave (below net.ipv4.ip_unprivileged_port_start), and not made in a pod's cgroup, as those
// of a pod with hostNetwork are. Not thread-safe. Source: runtime/sys/inet.h; ip(7), Documentation/networking/ip-sysctl.rst.
#pragma once

#include <map>
#include <set>
#include <string>

#include "daemon/network/proxy.h"

namespace coracle::network {

class MachineListeners {
 public:
  // `pods_cgroup`: the directory of the pods' cgroups in cgroup v2. If it is "", or if the kernel does not tell the cgroups of
  // sockets, every socket of root is the machine's own, and every one at such a port.
  explicit MachineListeners(std::string pods_cgroup) : pods_cgroup_(std::move(pods_cgroup)) {}
  // Of the calling thread's network namespace. Reads the tree of cgroups only for such sockets that it has not met before.
  // Errors: the kernel's.
  Result<std::set<LocalPort>> read();

 private:
  const std::string pods_cgroup_;
  std::map<uint64_t, bool> known_;  // sockets of root or at such a port, by inode: whether a pod made it, which never changes
};

}  // namespace coracle::network

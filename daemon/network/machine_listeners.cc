// SPDX-License-Identifier: Apache-2.0
// See machine_listeners.h.
#include "daemon/network/machine_listeners.h"

#include <sys/stat.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/base/text.h"
#include "runtime/sys/file.h"
#include "runtime/sys/inet.h"
#include "runtime/sys/tree_walk.h"

namespace coracle::network {
namespace {

constexpr uint32_t kRoot = 0;
constexpr uint16_t kOpenPortsUsually = 1024;  // the kernel's default

// From this port on any user may listen; at a lower one only root, and who has CAP_NET_BIND_SERVICE from root.
uint16_t first_open_port() {
  Result<std::string> text = sys::read_file("/proc/sys/net/ipv4/ip_unprivileged_port_start");
  return text ? parse_number<uint16_t>(trim(*text)).value_or(kOpenPortsUsually) : kOpenPortsUsually;
}

// The ids of all cgroups below a directory. An id is the inode number of the cgroup's directory, whose upper half a 32-bit kernel
// does not show; the lower half alone does not repeat among the cgroups that exist at one time.
std::set<uint32_t> cgroups_below(const std::string& directory) {
  std::set<uint32_t> out;
  Result<Fd> root = sys::open_directory(directory);
  if (!root) return out;
  auto add = [&](const sys::TreeEntry& entry) -> Result<void> {
    if (S_ISDIR(entry.about.st_mode)) out.insert(uint32_t(entry.about.st_ino));
    return {};
  };
  (void)sys::walk_tree(*root, add, {});  // on an error those that were found count
  return out;
}

}  // namespace

Result<std::set<LocalPort>> MachineListeners::read() {
  std::vector<sys::Listener> all = TRY(sys::listeners());
  auto is_by_root = [first_open = first_open_port()](const sys::Listener& one) {
    return one.uid == kRoot || one.at.port < first_open;
  };
  std::map<uint64_t, bool> now;
  bool is_any_new = false;
  for (const sys::Listener& one : all) {
    if (!is_by_root(one)) continue;
    auto met = known_.find(one.inode);
    is_any_new |= met == known_.end();
    now.emplace(one.inode, met != known_.end() && met->second);
  }
  if (is_any_new && !pods_cgroup_.empty()) {
    const auto cgroups = sys::cgroups_of_listeners().value_or({});
    const std::set<uint32_t> pods = cgroups.empty() ? std::set<uint32_t>() : cgroups_below(pods_cgroup_);
    for (auto& [inode, is_pods] : now) {
      auto cgroup = cgroups.find(inode);
      if (!known_.contains(inode)) is_pods = cgroup != cgroups.end() && pods.contains(uint32_t(cgroup->second));
    }
  }
  known_ = std::move(now);
  std::set<LocalPort> out;
  for (const sys::Listener& one : all) {
    const Protocol protocol = one.transport == sys::Transport::tcp ? Protocol::tcp : Protocol::udp;
    out.insert({protocol, Ipv4{one.at.address}, one.at.port, is_by_root(one) && !known_.at(one.inode)});
  }
  return out;
}

}  // namespace coracle::network

// SPDX-License-Identifier: Apache-2.0
// Which of the host's ids the pods have that live in a user namespace of their own (hostUsers: false): 65536 each, no two
// the same, none that a user of this machine has or may map (subuid(5)). A pod keeps its range from its first sandbox to
// its release, through daemons and sandboxes: files that are its own bear these ids.
//   take(uid) ─▶ <state_dir>/<uid>/user-ids ─▶ SandboxSpec's mappings, owners of what we write for the pod
// Source: KEP-127 (the kubelet allocates them), systemd's UIDS-GIDS.md (where containers' ids are looked for).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/node/config.h"
#include "runtime/base/guarded.h"
#include "runtime/base/result.h"
#include "runtime/runtime.h"

namespace coracle::node {

constexpr uint32_t kPodIds = 1 << 16;        // of one pod: 0 to 65535 inside
constexpr uint32_t kFirstPodId = 1 << 19;    // systemd's first for containers
constexpr uint32_t kLastPodId = 0x6fffffff;  // and its last

// Whether the pod asks for a user namespace of its own.
bool has_own_users(const json::value& pod);

// Ids that users of the machine may map: name:first:count, a line each. What is no such line says nothing.
using IdSpan = std::pair<uint64_t, uint64_t>;  // first, end
std::vector<IdSpan> parse_subordinate_ids(std::string_view text);
// The lowest range that nobody has. Nothing when there is none left.
std::optional<uint32_t> find_free_range(const std::map<std::string, uint32_t>& taken, const std::vector<IdSpan>& others);

class IdRanges {
 public:
  explicit IdRanges(const AgentConfig& config) : config_(config) {}

  // Learns what a daemon before this one gave out. Before anything is taken.
  void load(const std::vector<runtime::SandboxState>& sandboxes);
  // The first id of the pod's range: always the same until it is given back. Errors: unavailable, there is none left.
  Result<uint32_t> take(const std::string& uid);
  // Nothing of the pod's runs any more, and nothing is left that bears its ids.
  void give_back(const std::string& uid);

 private:
  const AgentConfig& config_;
  Guarded<std::map<std::string, uint32_t>> taken_;  // by the pod's uid
};

}  // namespace coracle::node

// SPDX-License-Identifier: Apache-2.0
// Allocates host ids to pods with their own user namespace (hostUsers: false): 65536 ids each, without overlap with other pods,
// with users of this machine or with their subordinate ids (subuid(5)). A pod keeps its range until its release, across daemons
// and sandboxes, because its files are owned by these ids.
//   take(uid) ─▶ <state_dir>/<uid>/user-ids ─▶ the mappings of the SandboxSpec, owners of the files written for the pod
// Source: KEP-127 (the kubelet allocates them), systemd's UIDS-GIDS.md (the range for containers).
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

constexpr uint32_t kPodIds = 1 << 16;        // ids per pod: 0 to 65535 in its user namespace
constexpr uint32_t kFirstPodId = 1 << 19;    // the first container id of systemd
constexpr uint32_t kLastPodId = 0x6fffffff;  // the last one

// Whether the pod has its own user namespace.
bool has_own_users(const json::value& pod);

// The subordinate ids of the machine's users: one name:first:count per line. Malformed lines are ignored.
using IdSpan = std::pair<uint64_t, uint64_t>;  // first, end
std::vector<IdSpan> parse_subordinate_ids(std::string_view text);
// The lowest free range. Returns nullopt if there is none.
std::optional<uint32_t> find_free_range(const std::map<std::string, uint32_t>& taken, const std::vector<IdSpan>& others);

class IdRanges {
 public:
  explicit IdRanges(const AgentConfig& config) : config_(config) {}

  // Loads the ranges that an earlier daemon allocated. Call before take().
  void load(const std::vector<runtime::SandboxState>& sandboxes);
  // The first id of the pod's range; the same until give_back(). Errors: unavailable if no range is free.
  Result<uint32_t> take(const std::string& uid);
  // Frees the range. The pod must have ended, and no file may be left that is owned by its ids.
  void give_back(const std::string& uid);

 private:
  const AgentConfig& config_;
  Guarded<std::map<std::string, uint32_t>> taken_;  // by pod uid
};

}  // namespace coracle::node

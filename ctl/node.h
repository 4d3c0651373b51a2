// SPDX-License-Identifier: Apache-2.0
// The pure halves of cordon, drain and taint: which pods may go, and what a list of taints becomes.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace coracle::ctl {

struct DrainRules {
  bool force = false, ignore_daemonsets = false, delete_emptydir_data = false;
};

struct DrainPlan {
  std::vector<const json::value*> evict;  // into the pods given
  std::vector<std::string> warnings;      // as "ignoring DaemonSet-managed Pods: a/b, c/d"
  std::vector<std::string> refusals;      // why nothing may be done yet
};

// Mirror pods stay without a word: their files make them. Source: kubectl drain's filters.
DrainPlan plan_drain(const std::vector<json::value>& pods, const DrainRules& rules);

struct TaintChange {
  std::string key, value, effect;  // effect "": of any, when removing
  bool remove = false;
};

// "KEY=VALUE:EFFECT", "KEY:EFFECT", "KEY:EFFECT-", "KEY-". Errors: bad_request, in kubectl's words.
Result<TaintChange> parse_taint(std::string_view text);

struct TaintResult {
  json::array taints;
  bool added = false, removed = false;
};

// Errors: bad_request where two of them contradict each other or say the same.
Result<void> check_taints(const std::vector<TaintChange>& changes);

// Errors: conflict when a value is there and may not be overwritten; not_found for what should be removed.
Result<TaintResult> change_taints(const json::array& taints, const std::vector<TaintChange>& changes, bool overwrite,
                                  const std::string& node);

}  // namespace coracle::ctl

// SPDX-License-Identifier: Apache-2.0
// The pure parts of cordon, drain and taint: which pods to evict, and the new list of taints.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace coracle::ctl {

struct DrainRules {
  bool force = false, ignore_daemonsets = false, delete_emptydir_data = false;
};

struct DrainPlan {
  std::vector<const json::value*> evict;  // point into the pods given
  std::vector<std::string> warnings;      // "ignoring DaemonSet-managed Pods: a/b, c/d"
  std::vector<std::string> refusals;      // reasons to evict nothing
};

// A DaemonSet that could not be read.
struct LostDaemonSet {
  std::string why;
  bool is_gone = false;  // then nobody would make its pods again, and --force sends them away
};
using LostDaemonSets = std::map<std::string, LostDaemonSet>;  // by "namespace/name"

// The DaemonSet that would make the pod again, as "namespace/name"; "" if the pod has another controller, none, or has ended.
std::string daemon_set_of(const json::value& pod);

// Each pod for one reason at most, the first in kubectl's order. Mirror pods are skipped without a warning: they cannot be
// evicted. Source: kubectl drain's filters.
DrainPlan plan_drain(const std::vector<json::value>& pods, const DrainRules& rules, const LostDaemonSets& lost = {});

struct TaintChange {
  std::string key, value, effect;  // to remove: effect "" means any effect
  bool remove = false;
};

// "KEY=VALUE:EFFECT", "KEY:EFFECT", "KEY:EFFECT-", "KEY-". Errors: bad_request, in kubectl's words.
Result<TaintChange> parse_taint(std::string_view text);

struct TaintResult {
  json::array taints;
  bool added = false, removed = false;
};

// Errors: bad_request if two changes contradict or repeat each other.
Result<void> check_taints(const std::vector<TaintChange>& changes);

// Errors: conflict if a taint has another value and `overwrite` is false; not_found if a taint to remove is absent.
Result<TaintResult> change_taints(const json::array& taints, const std::vector<TaintChange>& changes, bool overwrite,
                                  const std::string& node);

}  // namespace coracle::ctl

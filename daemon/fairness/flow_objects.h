// SPDX-License-Identifier: Apache-2.0
// FlowObjects: the stored FlowSchemas and PriorityLevelConfigurations on their way to Fairness, and what the server does for
// them.
//   store ── change ──▶ `changed` ▸ tend: put back what must be there ▸ rules to the house ▸ condition Dangling of each schema
// Mandatory objects count even while they are missing. Source: Kubernetes "API Priority and Fairness"; apiserver
// util/flowcontrol (apf_controller), registry/flowcontrol/rest.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "daemon/fairness/fairness.h"
#include "daemon/registry/registry.h"

namespace coracle::fairness {

// What is stored, and the mandatory ones that are not.
FlowRules stored_rules(const registry::Registry& registry);

class FlowObjects {
 public:
  // Both must outlive it.
  FlowObjects(registry::Registry& registry, Fairness& house) : registry_(registry), house_(house) {}

  // From here on `changed` is called, by the store's thread, when tend() has something to do. It must not block. Errors: what
  // the store says.
  Result<void> follow(std::function<void()> changed);
  void unfollow();

  // Brings house and objects level with what changed since the last time; nothing when nothing did. Writes to the store; what
  // goes wrong is logged, and tried again with the next change.
  void tend();

 private:
  void judge_schemas(const FlowRules& rules);

  registry::Registry& registry_;
  Fairness& house_;
  std::atomic<bool> changed_{true};
  std::vector<std::unique_ptr<engine::Subscription>> subscriptions_;
};

}  // namespace coracle::fairness

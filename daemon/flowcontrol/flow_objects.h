// SPDX-License-Identifier: Apache-2.0
// FlowObjects: passes the stored FlowSchemas and PriorityLevelConfigurations to the FlowController, and maintains these objects.
//   store ── change ──▶ `changed` ▸ reconcile: restore mandatory objects ▸ set_rules ▸ condition Dangling of each schema
// Mandatory objects are in force even while they are missing. Source: Kubernetes "API Priority and Fairness"; apiserver
// util/flowcontrol (apf_controller), registry/flowcontrol/rest.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "daemon/flowcontrol/flow_controller.h"
#include "daemon/registry/registry.h"

namespace coracle::flowcontrol {

// The stored rules, and the mandatory ones that are missing.
FlowRules stored_rules(const registry::Registry& registry);

class FlowObjects {
 public:
  // Both must outlive it.
  FlowObjects(registry::Registry& registry, FlowController& controller) : registry_(registry), controller_(controller) {}

  // Starts watching the objects. `changed` is called on the store's thread when reconcile() must be called; it must not block.
  // Errors: the store's.
  Result<void> follow(std::function<void()> changed);
  void unfollow();

  // Processes the changes since the last call: sets the rules and updates the objects; does nothing if there are none. Writes to
  // the store. Errors are logged, and the next change retries.
  void reconcile();

 private:
  void judge_schemas(const FlowRules& rules);

  registry::Registry& registry_;
  FlowController& controller_;
  std::atomic<bool> changed_{true};
  std::vector<std::unique_ptr<engine::Subscription>> subscriptions_;
};

}  // namespace coracle::flowcontrol

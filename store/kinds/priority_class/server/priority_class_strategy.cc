// SPDX-License-Identifier: Apache-2.0
// PriorityClasses: system classes cannot be deleted. Source: Kubernetes "Pod Priority and Preemption".
#include "store/kinds/strategy.h"
#include "store/object/object.h"
#include "store/object/status.h"

namespace coracle::kinds {
namespace {

Result<void> check_delete(const Object& object) {
  if (object.name() != "system-node-critical" && object.name() != "system-cluster-critical") return {};
  return forbidden(kPriorityClass, object.name(), "this is a system priority class and cannot be deleted");
}

}  // namespace

extern const StrategyFamily priority_class_strategies;
const StrategyFamily priority_class_strategies{{{.kind = &kPriorityClass, .check_delete = check_delete}}};

}  // namespace coracle::kinds

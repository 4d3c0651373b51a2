// SPDX-License-Identifier: Apache-2.0
// PriorityClasses: system classes cannot be deleted. Source: Kubernetes "Pod Priority and Preemption".
#include "daemon/registry/kinds/kinds.h"
#include "store/object/object.h"
#include "store/object/status.h"

namespace coracle::registry {
namespace {

Result<void> check_delete(const Object& object) {
  if (object.name() != "system-node-critical" && object.name() != "system-cluster-critical") return {};
  return forbidden(kPriorityClass, object.name(), "this is a system priority class and cannot be deleted");
}

}  // namespace

const Strategy& priority_class_strategy() {
  static const Strategy strategy = [] {
    Strategy s;
    s.kind = &kPriorityClass;
    s.check_delete = check_delete;
    return s;
  }();
  return strategy;
}

}  // namespace coracle::registry

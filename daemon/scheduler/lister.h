// SPDX-License-Identifier: Apache-2.0
// Lister: what plugins ask about objects that are neither pods nor nodes. An interface, for the caches are the scheduler's, and a
// test has a table.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "store/object/kind.h"
#include "store/object/object_ptr.h"
#include "store/object/selector.h"

namespace coracle::scheduler {

class Lister {
 public:
  virtual ~Lister() = default;
  // Null when there is none.
  virtual ObjectPtr claim(const Key& key) const = 0;
  virtual ObjectPtr volume(const std::string& name) const = 0;
  virtual ObjectPtr storage_class(const std::string& name) const = 0;
  virtual ObjectPtr csi_node(const std::string& name) const = 0;
  virtual std::vector<ObjectPtr> volumes() const = 0;
  // What selects pods: the services of a namespace, and a pod's controller (of kind ReplicationController, ReplicaSet,
  // StatefulSet).
  virtual std::vector<ObjectPtr> services(const std::string& ns) const = 0;
  virtual std::shared_ptr<const LabelSelector> selector(const Object& service) const = 0;  // null: it selects nobody
  virtual std::vector<ObjectPtr> budgets(const std::string& ns) const = 0;                 // PodDisruptionBudgets
  virtual ObjectPtr controller(const Kind& kind, const Key& key) const = 0;
};

}  // namespace coracle::scheduler

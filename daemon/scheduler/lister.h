// SPDX-License-Identifier: Apache-2.0
// Lister: the plugins' access to objects other than pods and nodes. It is an interface, because the scheduler uses caches and
// tests use tables.
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
  // Null if there is none.
  virtual ObjectPtr claim(const Key& key) const = 0;
  virtual ObjectPtr volume(const std::string& name) const = 0;
  virtual ObjectPtr storage_class(const std::string& name) const = 0;
  virtual ObjectPtr csi_driver(const std::string& name) const = 0;
  virtual ObjectPtr csi_node(const std::string& name) const = 0;
  virtual std::vector<ObjectPtr> storage_capacities() const = 0;  // CSIStorageCapacities of all namespaces
  virtual std::vector<ObjectPtr> volumes() const = 0;
  // The objects that select pods: the Services that select this one, sorted, and a pod's controller (ReplicationController,
  // ReplicaSet or StatefulSet).
  virtual std::vector<ObjectPtr> services_of(const Object& pod) const = 0;
  virtual std::vector<ObjectPtr> budgets(const std::string& ns) const = 0;  // PodDisruptionBudgets
  virtual ObjectPtr controller(const Kind& kind, const Key& key) const = 0;
};

}  // namespace coracle::scheduler

// SPDX-License-Identifier: Apache-2.0
// The Lister over the informers' caches.
#pragma once

#include "daemon/informer/informers.h"
#include "daemon/quota/disruption.h"
#include "daemon/scheduler/lister.h"
#include "store/object/selector_index.h"

namespace coracle::scheduler {

struct CachedLister : Lister {
  explicit CachedLister(Informers& informers)  // must not have started
      : claims(informers.of(kPersistentVolumeClaim)),
        all_volumes(informers.of(kPersistentVolume)),
        classes(informers.of(kStorageClass)),
        csi_drivers(informers.of(kCSIDriver)),
        csi_nodes(informers.of(kCSINode)),
        capacities(informers.of(kCSIStorageCapacity)),
        all_services(informers.of(kService)),
        all_budgets(informers.of(kPodDisruptionBudget)),
        replication_controllers(informers.of(kReplicationController)),
        replica_sets(informers.of(kReplicaSet)),
        stateful_sets(informers.of(kStatefulSet)) {
    all_services.on_change([this](const Informer::Change& change) {
      if (change.after) selectors.put(*change.after);
      else selectors.remove(change.before->key());
    });
  }

  ObjectPtr claim(const Key& key) const override { return claims.get(key); }
  ObjectPtr volume(const std::string& name) const override { return all_volumes.get({"", name}); }
  ObjectPtr storage_class(const std::string& name) const override { return classes.get({"", name}); }
  ObjectPtr csi_driver(const std::string& name) const override { return csi_drivers.get({"", name}); }
  ObjectPtr csi_node(const std::string& name) const override { return csi_nodes.get({"", name}); }
  std::vector<ObjectPtr> storage_capacities() const override { return capacities.list(); }
  std::vector<ObjectPtr> volumes() const override { return all_volumes.list(); }
  std::vector<ObjectPtr> services_of(const Object& pod) const override {
    std::vector<ObjectPtr> out;
    for (const Key& key : selectors.matching(pod))
      if (ObjectPtr service = all_services.get(key)) out.push_back(std::move(service));
    return out;
  }
  std::vector<ObjectPtr> budgets(const std::string& ns) const override { return all_budgets.list(ns); }
  ObjectPtr controller(const Kind& kind, const Key& key) const override {
    if (kind == kReplicaSet) return replica_sets.get(key);
    return kind == kStatefulSet ? stateful_sets.get(key) : replication_controllers.get(key);
  }

  Informer &claims, &all_volumes, &classes, &csi_drivers, &csi_nodes, &capacities, &all_services, &all_budgets,
      &replication_controllers, &replica_sets, &stateful_sets;
  SelectorIndex selectors{selector_of_service};  // of services
};

}  // namespace coracle::scheduler

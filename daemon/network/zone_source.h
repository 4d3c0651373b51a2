// SPDX-License-Identifier: Apache-2.0
// InformerZone: the zone's access to the objects, through informers and their indexes. It has no state of its own.
#pragma once

#include "daemon/informer/informer.h"
#include "daemon/network/zone.h"

namespace coracle::network {

class InformerZone : public ZoneSource {
 public:
  // Adds its indexes to the informers, which must not have started and must outlive it.
  InformerZone(Informer& services, Informer& slices, Informer& pods);

  ObjectPtr service(const Key& key) const override;
  std::vector<ObjectPtr> slices(const Key& service) const override;
  bool has_services(std::string_view ns) const override;
  ObjectPtr service_at(Ipv4 cluster_address) const override;
  std::vector<ObjectPtr> slices_at(Ipv4 endpoint) const override;
  ObjectPtr pod_at(Ipv4 address) const override;

 private:
  Informer& services_;
  Informer& slices_;
  Informer& pods_;
};

}  // namespace coracle::network

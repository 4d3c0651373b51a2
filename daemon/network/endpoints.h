// SPDX-License-Identifier: Apache-2.0
// Reads the parts of Services and EndpointSlices that both the proxy and the DNS need. Pure. Source: discovery/v1 EndpointSlice
// (conditions), KEP-1669 (terminating endpoints).
#pragma once

#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "daemon/network/address.h"
#include "store/object/object_ptr.h"
#include "store/schema/views.h"

namespace coracle::network {

inline constexpr std::string_view kServiceNameLabel = "kubernetes.io/service-name";

// Whether two states of one Service or EndpointSlice have the same rules, because they differ in nothing but metadata beside the
// labels and the annotation with a load balancer's sources. Rules are not planned for a change that none depends on.
bool have_same_rules(const Object& before, const Object& after);

bool ready(const view::Endpoint& endpoint);  // an absent condition means ready

// Whether an address may be an endpoint or a load balancer. Loopback, link-local, multicast and "this network" may not: with
// them, a Service could make the machine connect to itself or to the metadata service of its cloud (CVE-2021-25737).
bool acceptable(Ipv4 address);

// The IPv4 address of an endpoint, empty if it has none. All its addresses belong to the same pod.
Ipv4 address_of(const view::Endpoint& endpoint);

bool headless(const view::Service& service);  // clusterIP: None
// The Service's IPv4 cluster IP; empty if it is headless or ExternalName, or has none yet.
Ipv4 cluster_address(const view::Service& service);

// "ns/name" of the EndpointSlice's Service; "" if it has none.
std::string service_of(const Object& slice);
inline constexpr const char* kServiceIndex = "service-of";  // the index of an informer of slices by service_of()

struct Backend {
  Ipv4 address;
  uint16_t port = 0;
  auto operator<=>(const Backend&) const = default;
};

// The EndpointSlices of one Service. Their ports and addresses are read once for all ports of the Service.
class SlicesOfService {
 public:
  explicit SlicesOfService(const std::vector<ObjectPtr>& slices);
  bool has_backends(std::string_view port_name, std::string_view protocol) const {
    return ports_.contains({port_name, protocol});
  }
  // The endpoints that connections to one port are sent to: the ready ones, sorted, without duplicates. If none is ready, the
  // terminating ones that still serve. `port_name` and `protocol` ("TCP") are as in the Service's port.
  std::vector<Backend> backends(std::string_view port_name, std::string_view protocol) const;

 private:
  struct Slice {
    ObjectPtr object;
    std::vector<Ipv4> ready, terminating;  // without duplicates
  };
  struct At {
    size_t slice;
    uint16_t port;
  };
  std::vector<Slice> slices_;  // those that have addresses
  std::map<std::pair<std::string_view, std::string_view>, std::vector<At>>
      ports_;  // by name and protocol; the texts point into the objects
};

// The addresses of all endpoints that receive connections and are not known to be terminating. A terminating endpoint that still
// receives connections (publishNotReadyAddresses, or no other is left) is not included.
std::set<Ipv4> served_addresses(const std::vector<ObjectPtr>& slices);
// The same for one slice, as text: the index "served" of an informer of slices.
std::vector<std::string> served_by(const Object& slice);

}  // namespace coracle::network

// SPDX-License-Identifier: Apache-2.0
// Endpoints, read: what proxy and DNS both need to know of a Service and its EndpointSlices. Pure.
// Source: discovery/v1 EndpointSlice (conditions), KEP-1669 (terminating endpoints).
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

bool ready(const view::Endpoint& endpoint);  // absent means ready

// Whether an address may be a pod's, a machine's or a load balancer's. Loopback, link-local, multicast and "this network" never
// are: through them one could make the machine speak to itself or to its cloud's metadata service (CVE-2021-25737).
bool acceptable(Ipv4 address);

// The IPv4 address in `addresses`, none where there is none. All addresses of an endpoint are the same endpoint's.
Ipv4 address_of(const view::Endpoint& endpoint);

bool headless(const view::Service& service);  // clusterIP: None
// The Service's IPv4 cluster address; none for headless, ExternalName, and before it has got one.
Ipv4 cluster_address(const view::Service& service);

// "ns/name" of the Service that an EndpointSlice belongs to; the index "service" of an informer of slices.
std::string service_of(const Object& slice);

struct Backend {
  Ipv4 address;
  uint16_t port = 0;
  auto operator<=>(const Backend&) const = default;
};

// EndpointSlices of one Service, whose ports and addresses are read once for all ports of the Service.
class SlicesOfService {
 public:
  explicit SlicesOfService(const std::vector<ObjectPtr>& slices);
  bool has_backends(std::string_view port_name, std::string_view protocol) const {
    return ports_.contains({port_name, protocol});
  }
  // Where to send what arrives at one port: the ready endpoints, sorted, each once. When none is ready but some still serve while
  // they terminate, those. `port_name` and `protocol` ("TCP") as in the Service's port.
  std::vector<Backend> backends(std::string_view port_name, std::string_view protocol) const;

 private:
  struct Slice {
    ObjectPtr object;
    std::vector<Ipv4> ready, terminating;  // each once
  };
  struct At {
    size_t slice;
    uint16_t port;
  };
  std::vector<Slice> slices_;  // that have any
  std::map<std::pair<std::string_view, std::string_view>, std::vector<At>>
      ports_;  // by name and protocol; texts are the objects'
};

// The addresses of all endpoints that are sent connections and are not known to end. Who ends and is sent them all the same
// (publishNotReadyAddresses, or no other is left) is sent them until it is gone.
std::set<Ipv4> served_addresses(const std::vector<ObjectPtr>& slices);
// Those of one slice, as text: the index "served" of an informer of slices.
std::vector<std::string> served_by(const Object& slice);

}  // namespace coracle::network

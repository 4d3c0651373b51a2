// SPDX-License-Identifier: Apache-2.0
// From a Service and pods to endpoints: the pure part that the controllers of Endpoints and EndpointSlices and the mirroring
// controller share.
//   service + pods ──▶ backends ──▶ Endpoints.subsets
//                              └──▶ slices, at most 100 endpoints each, with as few changes as possible
// Source: Kubernetes Service, Endpoints, discovery.k8s.io/v1 EndpointSlice.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/controller/shared/common.h"
#include "store/object/selector_index.h"

namespace coracle::controller {

constexpr size_t kEndpointsPerSlice = 100;
constexpr size_t kEndpointsMax = 1000;  // addresses per Endpoints object

inline constexpr std::string_view kServiceNameLabel = "kubernetes.io/service-name";
inline constexpr std::string_view kManagedByLabel = "endpointslice.kubernetes.io/managed-by";
inline constexpr std::string_view kHeadlessLabel = "service.kubernetes.io/headless";
inline constexpr std::string_view kSliceController = "endpointslice-controller.k8s.io";
inline constexpr std::string_view kSliceMirror = "endpointslicemirroring-controller.k8s.io";
inline constexpr std::string_view kSkipMirrorLabel = "endpointslice.kubernetes.io/skip-mirror";

struct ServicePort {  // resolved for one pod
  std::string name, protocol, app_protocol;
  int64_t port = 0;
  auto operator<=>(const ServicePort&) const = default;
};

// Ports shared by many pods with the same ones. Compared by value.
class SharedPorts {
 public:
  SharedPorts() : SharedPorts(std::vector<ServicePort>()) {}
  SharedPorts(std::vector<ServicePort> ports) : ports_(std::make_shared<const std::vector<ServicePort>>(std::move(ports))) {}
  const std::vector<ServicePort>& operator*() const { return *ports_; }
  const std::vector<ServicePort>* operator->() const { return ports_.get(); }
  bool operator==(const SharedPorts& other) const { return ports_ == other.ports_ || *ports_ == *other.ports_; }
  bool operator<(const SharedPorts& other) const { return ports_ != other.ports_ && *ports_ < *other.ports_; }

 private:
  std::shared_ptr<const std::vector<ServicePort>> ports_;
};

struct Backend {  // one pod at one of its addresses
  std::string address;
  SharedPorts ports;   // in the Service's order
  bool ready = false;  // accepts new connections
  bool serving = false, terminating = false;
  std::string node, zone, hostname;
  bool prefers_zone = false, prefers_node = false;  // topology hints: preferred by clients in the same zone or on the same node
  json::value target;                               // ObjectReference
};

// The backends of a service for one address family ("IPv4", "IPv6"), sorted by address. Of several pods with the same address
// (the node's), the ready one comes first. `zone_of` may be empty.
std::vector<Backend> backends(const Object& service, const std::vector<ObjectPtr>& pods, std::string_view family,
                              const std::function<std::string(std::string_view node)>& zone_of);
std::vector<std::string> families(const Object& service);
bool is_headless(const Object& service);

// The desired Endpoints object. `present` may be null.
json::value endpoints_object(const Object& service, const std::vector<Backend>& backends, const ObjectPtr& present);

struct SlicePlan {
  std::vector<json::value> create, update;
  std::vector<ObjectPtr> remove;
};
struct SliceOwner {
  const Object& owner;       // a Service or, for mirroring, an Endpoints
  std::string service;       // its name
  std::string_view manager;  // kSliceController, kSliceMirror
  bool headless = false;
};
// `wanted`: backends by address family. `present`: the slices of this owner and manager.
SlicePlan plan_slices(const SliceOwner& owner, const std::map<std::string, std::vector<Backend>>& wanted,
                      const std::vector<ObjectPtr>& present);
// Carries out the plan for the Service `key`, and notes its writes in `own`. Errors: the Client's, of the first write that fails.
Result<void> apply(Client& client, const SlicePlan& plan, const Key& key, OwnWrites& own);

// Adds an index of EndpointSlices by the Service that their label names. Call before the informers start.
void index_by_service(Informer& slices);
// The indexed slices of the Service that this manager wrote.
std::vector<ObjectPtr> slices_of(const Informer& slices, const Key& service, std::string_view manager);

// The backends in a user-created Endpoints object, by address family.
std::map<std::string, std::vector<Backend>> backends_of_endpoints(const Object& endpoints);

// Enqueues the Services that select the pod before or after a change.
void name_services(const SelectorIndex& services, const Informer::Change& pod, const std::function<void(Key)>& enqueue);
// Adds an index of possible endpoints by namespace: pods that have an address and have not finished. Call before the informers
// start. A machine has few of them, however many pods are pending or finished.
void index_addressed(Informer& pods);
// The indexed pods that the service selects.
std::vector<ObjectPtr> selected_pods(const Informer& pods, const Object& service, SelectorCache& selectors);

}  // namespace coracle::controller

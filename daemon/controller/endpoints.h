// SPDX-License-Identifier: Apache-2.0
// From a Service and pods to the addresses behind it: the pure part that Endpoints, EndpointSlices and the mirror
// share.
//   service + pods ──▶ backends ──▶ Endpoints.subsets
//                              └──▶ slices, at most 100 endpoints each, changing as few as possible
// Source: Kubernetes Service, Endpoints, discovery.k8s.io/v1 EndpointSlice.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/controller/common.h"
#include "store/object/selector_cache.h"

namespace coracle::controller {

constexpr size_t kEndpointsPerSlice = 100;
constexpr size_t kEndpointsMax = 1000;  // addresses in one Endpoints object

inline constexpr std::string_view kServiceNameLabel = "kubernetes.io/service-name";
inline constexpr std::string_view kManagedByLabel = "endpointslice.kubernetes.io/managed-by";
inline constexpr std::string_view kHeadlessLabel = "service.kubernetes.io/headless";
inline constexpr std::string_view kSliceController = "endpointslice-controller.k8s.io";
inline constexpr std::string_view kSliceMirror = "endpointslicemirroring-controller.k8s.io";
inline constexpr std::string_view kSkipMirrorLabel = "endpointslice.kubernetes.io/skip-mirror";

struct ServicePort {  // as one pod offers it
  std::string name, protocol, app_protocol;
  int64_t port = 0;
  auto operator<=>(const ServicePort&) const = default;
};

// Ports that many pods offer alike, held once. Compared by value.
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
  bool ready = false;  // takes new connections
  bool serving = false, terminating = false;
  std::string node, zone, hostname;
  bool prefers_zone = false, prefers_node = false;  // clients there shall use it
  json::value target;                               // ObjectReference
};

// The pods behind a service, for one address family ("IPv4", "IPv6"), sorted by address; of several at one address (the node's)
// the ready one first. `zone_of` may be empty.
std::vector<Backend> backends(const Object& service, const std::vector<ObjectPtr>& pods, std::string_view family,
                              const std::function<std::string(std::string_view node)>& zone_of);
std::vector<std::string> families(const Object& service);
bool is_headless(const Object& service);

// Endpoints: the object that should be there. `present` may be null.
json::value endpoints_object(const Object& service, const std::vector<Backend>& backends, const ObjectPtr& present);

struct SlicePlan {
  std::vector<json::value> create, update;
  std::vector<ObjectPtr> remove;
};
struct SliceOwner {
  const Object& owner;       // a Service or, for the mirror, an Endpoints
  std::string service;       // its name
  std::string_view manager;  // kSliceController, kSliceMirror
  bool headless = false;
};
// `wanted`: backends by address family. `present`: the slices of this owner and manager.
SlicePlan plan_slices(const SliceOwner& owner, const std::map<std::string, std::vector<Backend>>& wanted,
                      const std::vector<ObjectPtr>& present);
Result<void> apply(Client& client, const SlicePlan& plan, const Key& key, OwnWrites& own);

// What a hand-written Endpoints says, by address family.
std::map<std::string, std::vector<Backend>> backends_of_endpoints(const Object& endpoints);

// Which Services a pod may stand behind, before and after a change.
void name_services(const Informer& services, SelectorCache& selectors, const Informer::Change& pod,
                   const std::function<void(Key)>& look_at);
// Before the informers are started: the pods that may stand behind a service, by namespace. They have an address and go on: a
// machine has few of them, however many pods wait or have ended.
void index_addressed(Informer& pods);
// Those of them that the service selects.
std::vector<ObjectPtr> selected_pods(const Informer& pods, const Object& service);

}  // namespace coracle::controller

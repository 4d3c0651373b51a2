// SPDX-License-Identifier: Apache-2.0
// See zone_source.h.
#include "daemon/network/zone_source.h"

#include "daemon/network/endpoints.h"
#include "store/object/object.h"

namespace coracle::network {
namespace {

constexpr const char* kNamespaceIndex = "dns-namespace";
constexpr const char* kAddressIndex = "dns-address";

std::vector<std::string> addresses_of_slice(const Object& object) {
  std::vector<std::string> out;
  for (view::Endpoint endpoint : view::EndpointSlice(object).endpoints())
    if (Ipv4 address = address_of(endpoint)) out.push_back(address.text());
  return out;
}

std::vector<std::string> address_of_pod(const Object& object) {
  view::Pod pod(object);
  if (pod.spec().host_network() || pod.status().pod_ip().empty()) return {};
  return {std::string(pod.status().pod_ip())};
}

}  // namespace

InformerZone::InformerZone(Informer& services, Informer& slices, Informer& pods)
    : services_(services), slices_(slices), pods_(pods) {
  services.add_index(kNamespaceIndex, [](const Object& object) { return std::vector<std::string>{object.ns()}; });
  services.add_index(kAddressIndex, [](const Object& object) {
    return std::vector<std::string>{cluster_address(view::Service(object)).text()};
  });
  slices.add_index(kServiceIndex, [](const Object& object) { return std::vector<std::string>{service_of(object)}; });
  slices.add_index(kAddressIndex, addresses_of_slice);
  pods.add_index(kAddressIndex, address_of_pod);
}

ObjectPtr InformerZone::service(const Key& key) const { return services_.get(key); }

std::vector<ObjectPtr> InformerZone::slices(const Key& service) const { return slices_.by_index(kServiceIndex, service.text()); }

bool InformerZone::has_services(std::string_view ns) const { return services_.count_by_index(kNamespaceIndex, ns) > 0; }

ObjectPtr InformerZone::service_at(Ipv4 address) const {
  std::vector<ObjectPtr> found = services_.by_index(kAddressIndex, address.text());
  return found.empty() ? nullptr : found.front();
}

std::vector<ObjectPtr> InformerZone::slices_at(Ipv4 address) const { return slices_.by_index(kAddressIndex, address.text()); }

ObjectPtr InformerZone::pod_at(Ipv4 address) const {
  std::vector<ObjectPtr> found = pods_.by_index(kAddressIndex, address.text());
  return found.empty() ? nullptr : found.front();
}

}  // namespace coracle::network

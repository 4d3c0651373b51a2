// SPDX-License-Identifier: Apache-2.0
// See parts.h.
#include "daemon/registry/parts.h"

#include "store/object/object.h"
#include "store/schema/views.h"

namespace coracle::registry {
namespace {

constexpr std::string_view kComponents[] = {"controller-manager", "etcd-0", "scheduler"};

Result<void> make_service_network(Registry& registry, const kinds::Ranges& ranges) {
  Key key{"", "kubernetes"};
  if (!registry.get(kServiceCIDR, key)) {
    json::value network = json::object{{"metadata", json::object{{"name", key.name}}},
                                       {"spec", json::object{{"cidrs", json::array{json::string(ranges.service_cidr)}}}}};
    auto made = registry.create(kServiceCIDR, {}, std::move(network), internal_writer());
    if (!made && made.error().code() != Code::already_exists) return made.take_error();
  }
  ObjectPtr there = TRY(registry.get(kServiceCIDR, key));
  if (!view::ServiceCIDR(*there).status().conditions().empty()) return {};
  json::object ready{{"type", "Ready"},
                     {"status", "True"},
                     {"lastTransitionTime", format_time(registry.clock().now())},
                     {"reason", ""},
                     {"message", "Kubernetes default Service CIDR is ready"}};
  json::value patch = json::object{{"status", json::object{{"conditions", json::array{std::move(ready)}}}}};
  TRY(registry.patch(kServiceCIDR, key, "status", PatchType::merge, patch, false, internal_writer()));
  return {};
}

Result<void> make_component(Registry& registry, std::string_view name) {
  if (registry.get(kComponentStatus, {"", std::string(name)})) return {};
  json::object healthy{{"type", "Healthy"}, {"status", "True"}, {"message", "ok"}};
  json::value component =
      json::object{{"metadata", json::object{{"name", name}}}, {"conditions", json::array{std::move(healthy)}}};
  auto made = registry.create(kComponentStatus, {}, std::move(component), internal_writer());
  if (!made && made.error().code() != Code::already_exists) return made.take_error();
  return {};
}

}  // namespace

Result<void> make_parts(Registry& registry, const kinds::Ranges& ranges) {
  TRY(make_service_network(registry, ranges).wrap("make the ServiceCIDR kubernetes"));
  for (std::string_view name : kComponents) TRY(make_component(registry, name).wrap("make a ComponentStatus"));
  return {};
}

}  // namespace coracle::registry

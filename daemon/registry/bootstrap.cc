// SPDX-License-Identifier: Apache-2.0
// See bootstrap.h.
#include "daemon/registry/bootstrap.h"

#include "daemon/registry/parts.h"
#include "store/kinds/flowcontrol/flow_defaults.h"
#include "store/kinds/meta/metadata.h"
#include "store/kinds/service/server/address_range.h"
#include "store/object/object.h"
#include "store/schema/priority.h"

namespace coracle::registry {
namespace {

constexpr std::string_view kPortName = "https";
constexpr int kServicePort = 443;

// Creates the object, or updates it.
Result<void> ensure(Registry& registry, const Kind& kind, const Key& key, json::value body) {
  if (!registry.get(kind, key)) {
    auto created = registry.create(kind, {key.ns, ""}, body, internal_writer());
    if (created || created.error().code() != Code::already_exists)
      return created ? Result<void>() : Result<void>(created.take_error());
  }
  TRY(registry.patch(kind, key, {}, PatchType::merge, body, false, internal_writer()));
  return {};
}

json::object metadata(std::string_view name, std::string_view ns = {}) {
  json::object out{{"name", name}};
  if (!ns.empty()) out["namespace"] = ns;
  return out;
}

json::value service(const std::string& address, uint16_t target) {
  json::object meta = metadata("kubernetes", "default");
  meta["labels"] = json::object{{"component", "apiserver"}, {"provider", "kubernetes"}};
  json::object port{{"name", kPortName}, {"protocol", "TCP"}, {"port", kServicePort}, {"targetPort", int64_t(target)}};
  return json::object{
      {"metadata", std::move(meta)},
      {"spec", json::object{{"type", "ClusterIP"}, {"clusterIP", address}, {"ports", json::array{std::move(port)}}}}};
}

json::value endpoints(const Bootstrap& given) {
  json::object meta = metadata("kubernetes", "default");
  meta["labels"] = json::object{{"endpointslice.kubernetes.io/skip-mirror", "true"}};
  json::object subset{
      {"addresses", json::array{json::object{{"ip", given.api_address}}}},
      {"ports", json::array{json::object{{"name", kPortName}, {"port", int64_t(given.api_port)}, {"protocol", "TCP"}}}}};
  return json::object{{"metadata", std::move(meta)}, {"subsets", json::array{std::move(subset)}}};
}

json::value slice(const Bootstrap& given) {
  json::object meta = metadata("kubernetes", "default");
  meta["labels"] = json::object{{"kubernetes.io/service-name", "kubernetes"}};
  bool v6 = given.api_address.find(':') != std::string::npos;
  json::object endpoint{{"addresses", json::array{json::string(given.api_address)}},
                        {"conditions", json::object{{"ready", true}}}};
  return json::object{
      {"metadata", std::move(meta)},
      {"addressType", v6 ? "IPv6" : "IPv4"},
      {"endpoints", json::array{std::move(endpoint)}},
      {"ports", json::array{json::object{{"name", kPortName}, {"port", int64_t(given.api_port)}, {"protocol", "TCP"}}}}};
}

Result<void> make_priority_classes(Registry& registry) {
  for (const schema::SystemClass& one : schema::kSystemClasses) {
    const Kind& kind = kPriorityClass;
    const Key key{"", std::string(one.name)};
    if (!registry.get(kind, key))
      TRY(ensure(registry, kind, key,
                 json::object{{"metadata", metadata(key.name)}, {"value", one.value}, {"description", one.description}}));
  }
  return {};
}

json::value storage_class(std::string_view name, std::string_view provisioner, bool by_default) {
  json::object meta = metadata(name);
  if (by_default) meta["annotations"] = json::object{{"storageclass.kubernetes.io/is-default-class", "true"}};
  return json::object{{"metadata", std::move(meta)},
                      {"provisioner", provisioner},
                      {"reclaimPolicy", "Delete"},
                      {"volumeBindingMode", "WaitForFirstConsumer"},
                      {"allowVolumeExpansion", true}};
}

// After their creation, they may be changed by administrators.
Result<void> make_storage_classes(Registry& registry) {
  for (const json::value& wanted :
       {storage_class("directory", "coracle.io/directory", true), storage_class("local-path", "rancher.io/local-path", false)}) {
    Key key{"", std::string(metadata_of(wanted).name())};
    if (!registry.get(kStorageClass, key)) TRY(ensure(registry, kStorageClass, key, wanted));
  }
  return {};
}

}  // namespace

Result<void> ensure_flow_control(Registry& registry) {
  for (const Kind& kind : {kPriorityLevelConfiguration, kFlowSchema}) {
    for (const json::value& wanted : schema::initial_flow_objects(kind)) {
      Key key{"", std::string(metadata_of(wanted).name())};
      auto found = registry.get(kind, key);
      if (!found) {
        TRY(registry.create(kind, {}, wanted, internal_writer()));
        continue;
      }
      // A PriorityLevelConfiguration has a spec too.
      const json::value &spec = view::FlowSchema(**found).spec().raw(), &wanted_spec = view::FlowSchema(wanted).spec().raw();
      bool ours =
          schema::mandatory_flow_spec(kind, key.name) || (*found)->annotation("apf.kubernetes.io/autoupdate-spec") == "true";
      bool exempt = key.name == "exempt" && kind == kPriorityLevelConfiguration;  // its shares may be changed by administrators
      if (!ours || exempt || same_json(spec, wanted_spec)) continue;
      json::value replaced = (*found)->json();
      replaced.get_object()["spec"] = wanted_spec;
      TRY(registry.update(kind, key, {}, std::move(replaced), internal_writer()));
    }
  }
  return {};
}

Result<std::string> api_service_address(const kinds::Ranges& ranges) {
  kinds::AddressRange range = TRY(kinds::AddressRange::parse(ranges.service_cidr));
  return kinds::address_text(range.first());
}

Result<void> bootstrap(Registry& registry, const kinds::Ranges& ranges, const Bootstrap& given) {
  for (std::string_view name : {"default", "kube-system", "kube-public", "kube-node-lease"})
    if (!registry.get(kNamespace, {"", std::string(name)}))
      TRY(ensure(registry, kNamespace, {"", std::string(name)}, json::object{{"metadata", metadata(name)}}));
  TRY(ensure_flow_control(registry).wrap("make the flow schemas"));
  TRY(make_priority_classes(registry));
  if (given.storage_classes) TRY(make_storage_classes(registry).wrap("make the storage classes"));
  std::string address = TRY(api_service_address(ranges));
  Key key{"default", "kubernetes"};
  TRY(ensure(registry, kService, key, service(address, given.api_port)).wrap("make the Service kubernetes"));
  TRY(make_parts(registry, ranges));
  if (given.api_address.empty()) return {};
  TRY(ensure(registry, kEndpoints, key, endpoints(given)).wrap("make the Endpoints kubernetes"));
  TRY(ensure(registry, kEndpointSlice, key, slice(given)).wrap("make the EndpointSlice kubernetes"));
  return {};
}

}  // namespace coracle::registry

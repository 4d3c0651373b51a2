// SPDX-License-Identifier: Apache-2.0
// Defaults of CustomResourceDefinitions (names derived from the kind, the stored version) and of resource claims. Source:
// apiextensions-apiserver pkg/apis/apiextensions/v1/defaults.go; claims: Kubernetes pkg/apis/resource/v1/defaults.go.
#include "runtime/base/text.h"
#include "store/schema/defaults/rules.h"

namespace coracle::schema {
namespace {

void name_defaults(json::object& spec) {
  json::object* names = object_at(spec, "names");
  std::string kind(names ? text_at(*names, "kind") : std::string_view());
  if (kind.empty()) return;
  if (unset(*names, "singular")) (*names)["singular"] = to_lower(kind);
  if (unset(*names, "listKind")) (*names)["listKind"] = kind + "List";
}

void stored_version(json::object& definition) {
  json::object* status = object_at(definition, "status");
  json::object* spec = object_at(definition, "spec");
  json::array* versions = spec ? array_at(*spec, "versions") : nullptr;
  json::array* stored = status ? array_at(*status, "storedVersions") : nullptr;
  if (!versions || (stored && !stored->empty())) return;
  for (json::value& version : *versions) {
    if (!get_bool(version, "storage")) continue;
    json::value& place = definition["status"];
    if (!place.is_object()) place.emplace_object();
    place.get_object()["storedVersions"] = json::array{get_string(version, "name")};
    return;
  }
}

// One device, unless all are requested.
void count_default(json::object& request) {
  if (text_at(request, "allocationMode") == "ExactCount" && unset(request, "count")) request["count"] = 1;
}

constexpr NamedDefaultRule kExtensionDefaults[] = {
    {"io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionSpec", name_defaults},
    {"io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition", stored_version},
    {"io.k8s.api.resource.v1.ExactDeviceRequest", count_default},
    {"io.k8s.api.resource.v1.DeviceSubRequest", count_default},
};

}  // namespace

std::span<const NamedDefaultRule> extension_defaults() { return kExtensionDefaults; }

}  // namespace coracle::schema

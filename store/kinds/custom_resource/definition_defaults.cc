// SPDX-License-Identifier: Apache-2.0
// Defaults of CustomResourceDefinitions: names derived from the kind, the stored version. Source: apiextensions-apiserver
// pkg/apis/apiextensions/v1/defaults.go.
#include "runtime/base/text.h"
#include "store/kinds/custom_resource/custom_resource_kinds.h"
#include "store/schema/views.h"

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
  for (const json::value& version : *versions) {
    if (!view::CustomResourceDefinitionVersion(version).storage()) continue;
    json::value& place = definition["status"];
    if (!place.is_object()) place.emplace_object();
    place.get_object()["storedVersions"] = json::array{view::CustomResourceDefinitionVersion(version).name()};
    return;
  }
}

constexpr NamedDefaultRule kDefinitionDefaults[] = {
    {"io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionSpec", name_defaults},
    {"io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition", stored_version},
};

}  // namespace

std::span<const NamedDefaultRule> definition_defaults() { return kDefinitionDefaults; }

}  // namespace coracle::schema

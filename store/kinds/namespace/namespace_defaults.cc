// SPDX-License-Identifier: Apache-2.0
// Defaults of Namespaces: each has its name as a label, for selectors. Source: Kubernetes "Namespaces", automatic labelling.
#include <string>

#include "store/kinds/namespace/namespace_kinds.h"

namespace coracle::schema {
namespace {

constexpr std::string_view kNameLabel = "kubernetes.io/metadata.name";

void default_namespace(json::object& object) {
  json::object* metadata = object_at(object, "metadata");
  if (!metadata || unset(*metadata, "name")) return;
  if (!object_at(*metadata, "labels")) (*metadata)["labels"].emplace_object();
  json::object& labels = (*metadata)["labels"].get_object();
  std::string name(text_at(*metadata, "name"));
  if (text_at(labels, kNameLabel) == name) return;
  json::object sorted;  // map keys are sorted
  bool placed = false;
  for (auto& pair : labels) {
    if (pair.key() == kNameLabel) continue;
    if (!placed && pair.key() > kNameLabel) {
      sorted.emplace(kNameLabel, name);
      placed = true;
    }
    sorted.emplace(pair.key(), std::move(pair.value()));
  }
  if (!placed) sorted.emplace(kNameLabel, name);
  labels = std::move(sorted);
}

constexpr NamedDefaultRule kNamespaceDefaults[] = {{"io.k8s.api.core.v1.Namespace", default_namespace}};

}  // namespace

std::span<const NamedDefaultRule> namespace_defaults() { return kNamespaceDefaults; }

void begin_namespace(json::value& object) {
  make(object, "spec.finalizers") = json::array{"kubernetes"};
  json::value& status = make(object, "status");
  status = json::object{{"phase", "Active"}};
}

}  // namespace coracle::schema

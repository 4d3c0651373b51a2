// SPDX-License-Identifier: Apache-2.0
// Namespaces: start as Active with their name as a label. A deleted namespace is Terminating until the controller has emptied it
// and removed "kubernetes" from spec.finalizers (PUT /finalize). Source: Kubernetes "Namespaces".
#include <algorithm>

#include "daemon/registry/kinds/kinds.h"
#include "daemon/registry/metadata.h"

namespace coracle::registry {
namespace {

constexpr std::string_view kNameLabel = "kubernetes.io/metadata.name";

void label_with_name(json::value& object) {
  json::value& labels = metadata_of(object)["labels"];
  if (!labels.is_object()) labels.emplace_object();
  labels.get_object()[kNameLabel] = get_string(object, "metadata.name");
}

void prepare_namespace_create(json::value& object) {
  label_with_name(object);
  make(object, "status.phase") = "Active";
  json::value& finalizers = make(object, "spec.finalizers");
  if (!finalizers.is_array()) finalizers.emplace_array();
  json::array& all = finalizers.get_array();
  if (std::find(all.begin(), all.end(), json::value("kubernetes")) == all.end()) all.push_back("kubernetes");
}

void prepare_namespace_update(json::value& object, const json::value& old) {
  label_with_name(object);
  if (const json::value* finalizers = find(old, "spec.finalizers"))
    make(object, "spec.finalizers") = *finalizers;  // only /finalize removes them
}

}  // namespace

const Strategy& namespace_strategy() {
  static const Strategy strategy = [] {
    Strategy s;
    s.kind = &kNamespace;
    s.prepare_create = prepare_namespace_create;
    s.prepare_update = prepare_namespace_update;
    return s;
  }();
  return strategy;
}

}  // namespace coracle::registry

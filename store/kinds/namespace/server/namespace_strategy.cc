// SPDX-License-Identifier: Apache-2.0
// Namespaces: start as Active with their name as a label. A deleted namespace is Terminating until the controller has emptied it
// and removed "kubernetes" from spec.finalizers (PUT /finalize). Source: Kubernetes "Namespaces".
#include <algorithm>

#include "store/kinds/strategy.h"
#include "store/schema/views.h"

namespace coracle::kinds {
namespace {

constexpr std::string_view kNameLabel = "kubernetes.io/metadata.name";

void label_with_name(json::value& object) {
  json::object& labels = make_object(object, "metadata.labels");  // before the name is read, which may move
  labels[kNameLabel] = view::Namespace(object).metadata().name();
}

void prepare_namespace_create(json::value& object) {
  label_with_name(object);
  make(object, "status.phase") = "Active";
  json::array& all = make_array(object, "spec.finalizers");
  if (std::find(all.begin(), all.end(), json::value("kubernetes")) == all.end()) all.push_back("kubernetes");
}

void prepare_namespace_update(json::value& object, const json::value& old) {
  label_with_name(object);
  if (view::NamespaceSpec spec = view::Namespace(old).spec(); spec.has_finalizers())
    make(object, "spec.finalizers") = spec.finalizers().raw();  // only /finalize removes them
}

}  // namespace

extern const StrategyFamily namespace_strategies;
const StrategyFamily namespace_strategies{
    {{.kind = &kNamespace, .prepare_create = prepare_namespace_create, .prepare_update = prepare_namespace_update}}};

}  // namespace coracle::kinds

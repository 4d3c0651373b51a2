// SPDX-License-Identifier: Apache-2.0
// Validation of RuntimeClasses. Source: node.k8s.io/v1 API reference.
#include <set>

#include "store/kinds/runtime_class/runtime_class_kinds.h"
#include "store/schema/validate/resource.h"
#include "store/schema/views.h"

namespace coracle::schema {
namespace {

void check_runtime_class(const json::value& object, const std::string&, Findings& out) {
  std::string_view handler = view::RuntimeClass(object).handler();
  out.invalid_all("handler", handler, dns_label_problems(handler));
}

void check_overhead(const json::value& overhead, const std::string& path, Findings& out) {
  check_container_resources(out, sub(path, "limits"), view::Overhead(overhead).pod_fixed());
}

void check_scheduling(const json::value& scheduling, const std::string& path, Findings& out) {
  check_labels(out, sub(path, "nodeSelector"), view::Scheduling(scheduling).node_selector());
  const json::array& tolerations = view::Scheduling(scheduling).tolerations().raw();
  std::set<std::string> seen;  // canonical: equal values have equal text
  for (size_t i = 0; i < tolerations.size(); ++i) {
    if (!seen.insert(to_text(tolerations[i])).second) out.duplicate_json(item(sub(path, "tolerations"), i), tolerations[i]);
  }
}

constexpr NamedValidationRule kRuntimeClassChecks[] = {
    {"io.k8s.api.node.v1.RuntimeClass", check_runtime_class},
    {"io.k8s.api.node.v1.Overhead", check_overhead},
    {"io.k8s.api.node.v1.Scheduling", check_scheduling},
};

}  // namespace

std::span<const NamedValidationRule> runtime_class_rules() { return kRuntimeClassChecks; }

void check_runtime_class_update(const json::value& now, const json::value& before, std::string_view, Findings& out) {
  check_immutable(out, "handler", view::RuntimeClass(now).handler(), view::RuntimeClass(before).handler());
}

}  // namespace coracle::schema

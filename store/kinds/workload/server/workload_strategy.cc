// SPDX-License-Identifier: Apache-2.0
// DaemonSets: an annotation counts the changes of the template, and pods have the number as a label, for tools older than
// ControllerRevisions. Source: Kubernetes apps/v1 DeprecatedTemplateGeneration; the kind's registry strategy.
#include <algorithm>
#include <string>

#include "runtime/base/text.h"
#include "store/kinds/strategy.h"
#include "store/object/object.h"
#include "store/schema/views.h"

namespace coracle::kinds {
namespace {

constexpr std::string_view kGeneration = "deprecated.daemonset.template.generation";

int64_t generation_of(const json::value& set) {
  const json::value* written = view::DaemonSet(set).metadata().annotations().if_contains(kGeneration);
  return written && written->is_string() ? parse_number<int64_t>(std::string_view(written->get_string())).value_or(0) : 0;
}

void write_generation(json::value& set, int64_t generation) {
  make_object(set, "metadata.annotations")[kGeneration] = std::to_string(generation);
}

Result<void> begin_counting(json::value& set, const Allocation&) {
  write_generation(set, std::max<int64_t>(generation_of(set), 1));
  return {};
}

Result<void> count_template(json::value& set, const Object& old, const Allocation&) {
  const json::value *now = view::DaemonSet(set).spec().template_().pointer(),
                    *before = view::DaemonSet(old).spec().template_().pointer();
  bool changed = now && before && !same_json(*now, *before);
  write_generation(set, std::max<int64_t>(generation_of(old.json()), 1) + changed);
  return {};
}

}  // namespace

extern const StrategyFamily workload_strategies;
const StrategyFamily workload_strategies{
    {{.kind = &kDaemonSet, .allocate_create = begin_counting, .allocate_update = count_template}}};

}  // namespace coracle::kinds

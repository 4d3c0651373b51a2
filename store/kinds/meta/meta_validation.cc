// SPDX-License-Identifier: Apache-2.0
// Validation of the metadata of templates and of label selectors. The metadata of objects: store/schema/validate/metadata.cc.
// Source: Kubernetes "Labels and Selectors".
#include "store/kinds/meta/meta_kinds.h"
#include "store/schema/views.h"

namespace coracle::schema {
namespace {

// metadata of a template: labels and annotations only.
void check_template_metadata(const json::value& value, const std::string& path, Findings& out) {
  view::ObjectMeta metadata(value);
  check_labels(out, sub(path, "labels"), metadata.labels());
  check_annotations(out, sub(path, "annotations"), metadata.annotations());
}

void check_selector_requirement(const json::value& value, const std::string& path, Findings& out) {
  view::LabelSelectorRequirement requirement(value);
  bool listed = requirement.operator_() == "In" || requirement.operator_() == "NotIn";
  bool bare = requirement.operator_() == "Exists" || requirement.operator_() == "DoesNotExist";
  if (listed && requirement.values().empty()) {
    out.required(sub(path, "values"), "must be specified when `operator` is 'In' or 'NotIn'");
  }
  if (bare && !requirement.values().empty()) {
    out.forbidden(sub(path, "values"), "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
  }
  if (!listed && !bare && !requirement.operator_().empty()) {
    out.invalid(sub(path, "operator"), requirement.operator_(), "not a valid selector operator");
  }
  if (std::string_view key = requirement.key(); !key.empty())
    out.invalid_all([&] { return sub(path, "key"); }, key, qualified_name_problems(key));
  auto values = requirement.values();
  for (size_t i = 0; i < values.size(); ++i)
    out.invalid_all([&] { return item(sub(path, "values"), i); }, values[i], label_value_problems(values[i]));
}

void check_label_selector(const json::value& value, const std::string& path, Findings& out) {
  check_labels(out, sub(path, "matchLabels"), view::LabelSelector(value).match_labels());
}

constexpr NamedValidationRule kMetadataChecks[] = {
    {"io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta", check_template_metadata},
    {"io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector", check_label_selector},
    {"io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelectorRequirement", check_selector_requirement},
};

}  // namespace

std::span<const NamedValidationRule> meta_rules() { return kMetadataChecks; }

}  // namespace coracle::schema

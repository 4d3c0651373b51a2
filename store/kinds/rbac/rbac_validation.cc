// SPDX-License-Identifier: Apache-2.0
// Validation of roles and bindings: a rule is about resources or about non-resource URLs, and the role of a binding is immutable.
// Source: rbac.authorization.k8s.io/v1 API reference.
#include <algorithm>

#include "store/kinds/rbac/rbac_kinds.h"
#include "store/schema/validate/syntax.h"
#include "store/schema/views.h"

namespace coracle::schema {
namespace {

constexpr std::string_view kGroup = "rbac.authorization.k8s.io";

void check_policy_rule(view::PolicyRule rule, bool namespaced, const std::string& path, Findings& out) {
  if (rule.verbs().empty()) out.required(sub(path, "verbs"), "verbs must contain at least one value");
  if (!rule.non_resource_urls().empty()) {
    json::value urls(rule.non_resource_urls().raw());
    std::string at = sub(path, "nonResourceURLs");
    if (namespaced) out.invalid_json(at, urls, "namespaced rules cannot apply to non-resource URLs");
    bool of_resources = !rule.api_groups().empty() || !rule.resources().empty() || !rule.resource_names().empty();
    if (of_resources) out.invalid_json(at, urls, "rules cannot apply to both regular resources and non-resource URLs");
    return;
  }
  if (rule.api_groups().empty()) out.required(sub(path, "apiGroups"), "resource rules must supply at least one api group");
  if (rule.resources().empty()) out.required(sub(path, "resources"), "resource rules must supply at least one resource");
}

void check_role(const json::value& value, const std::string&, Findings& out) {
  view::Role role(value);
  for (size_t i = 0; i < role.rules().size(); ++i) check_policy_rule(role.rules()[i], true, item("rules", i), out);
}

void check_cluster_role(const json::value& value, const std::string&, Findings& out) {
  view::ClusterRole role(value);
  for (size_t i = 0; i < role.rules().size(); ++i) check_policy_rule(role.rules()[i], false, item("rules", i), out);
  if (role.has_aggregation_rule() && role.aggregation_rule().cluster_role_selectors().empty()) {
    out.required("aggregationRule.clusterRoleSelectors",
                 "at least one clusterRoleSelector required if aggregationRule is non-nil");
  }
}

void check_role_ref(view::RoleRef ref, std::vector<std::string> kinds, Findings& out) {
  if (ref.api_group() != kGroup) out.not_supported("roleRef.apiGroup", ref.api_group(), {std::string(kGroup)});
  if (std::find(kinds.begin(), kinds.end(), ref.kind()) == kinds.end())
    out.not_supported("roleRef.kind", ref.kind(), std::move(kinds));
  if (ref.name().empty()) out.required("roleRef.name");
  else out.invalid_all("roleRef.name", ref.name(), path_segment_problems(ref.name()));
}

void check_binding_subject(view::Subject subject, bool namespaced, const std::string& path, Findings& out) {
  if (subject.name().empty()) out.required(sub(path, "name"));
  if (subject.kind() == "ServiceAccount") {
    if (!subject.name().empty()) out.invalid_all(sub(path, "name"), subject.name(), dns_subdomain_problems(subject.name()));
    if (!subject.api_group().empty()) out.not_supported(sub(path, "apiGroup"), subject.api_group(), {""});
    if (!namespaced && subject.namespace_().empty()) out.required(sub(path, "namespace"));
  } else if (subject.kind() == "User" || subject.kind() == "Group") {
    std::string_view what = subject.kind() == "User" ? "user name cannot be empty" : "group name cannot be empty";
    if (subject.name().empty()) out.invalid(sub(path, "name"), subject.name(), what);
    if (subject.api_group() != kGroup) out.not_supported(sub(path, "apiGroup"), subject.api_group(), {std::string(kGroup)});
  } else {
    out.not_supported(sub(path, "kind"), subject.kind(), {"ServiceAccount", "User", "Group"});
  }
}

void check_role_binding(const json::value& value, const std::string&, Findings& out) {
  view::RoleBinding binding(value);
  check_role_ref(binding.role_ref(), {"Role", "ClusterRole"}, out);
  for (size_t i = 0; i < binding.subjects().size(); ++i)
    check_binding_subject(binding.subjects()[i], true, item("subjects", i), out);
}

void check_cluster_role_binding(const json::value& value, const std::string&, Findings& out) {
  view::ClusterRoleBinding binding(value);
  check_role_ref(binding.role_ref(), {"ClusterRole"}, out);
  for (size_t i = 0; i < binding.subjects().size(); ++i)
    check_binding_subject(binding.subjects()[i], false, item("subjects", i), out);
}

constexpr NamedValidationRule kRbacChecks[] = {
    {"io.k8s.api.rbac.v1.Role", check_role},
    {"io.k8s.api.rbac.v1.ClusterRole", check_cluster_role},
    {"io.k8s.api.rbac.v1.RoleBinding", check_role_binding},
    {"io.k8s.api.rbac.v1.ClusterRoleBinding", check_cluster_role_binding},
};

}  // namespace

std::span<const NamedValidationRule> rbac_rules() { return kRbacChecks; }

void check_binding_update(const json::value& now, const json::value& before, std::string_view, Findings& out) {
  // A ClusterRoleBinding has its role at the same place.
  view::RoleRef ref = view::RoleBinding(now).role_ref(), old = view::RoleBinding(before).role_ref();
  if (ref && old && !same_json(ref.raw(), old.raw())) out.invalid_json("roleRef", ref.raw(), "cannot change roleRef");
}

}  // namespace coracle::schema

// SPDX-License-Identifier: Apache-2.0
// Validation of LimitRanges and ResourceQuotas: valid resource names, consistent amounts, compatible scopes. Source: core/v1 API
// reference, LimitRange and ResourceQuota; Kubernetes "Resource Quotas".
#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "runtime/base/text.h"
#include "store/kinds/quota/quota_kinds.h"
#include "store/object/quantity.h"
#include "store/schema/validate/resource.h"
#include "store/schema/views.h"

namespace coracle::schema {
namespace {

// ---- LimitRange ----

using Amount = std::optional<Quantity>;

void check_ratio(const Quantity& ratio, const Amount& min, const Amount& max, const std::string& path, Findings& out) {
  if (ratio < Quantity::of_count(1)) out.invalid(path, ratio.text(), "ratio " + ratio.text() + " is less than 1");
  if (!min || !max || min->is_zero()) return;
  double most = double(max->milli_value()) / double(min->milli_value());
  if (double(ratio.milli_value()) / 1000 <= most) return;
  out.invalid(path, ratio.text(), "ratio " + ratio.text() + " is greater than max/min = " + std::to_string(most));
}

void check_limit_amounts(view::LimitRangeItem limit, std::string_view name, const std::string& path, Findings& out) {
  Amount min = amount_in(limit.min(), name), max = amount_in(limit.max(), name), usual = amount_in(limit.default_(), name),
         request = amount_in(limit.default_request(), name), ratio = amount_in(limit.max_limit_request_ratio(), name);
  if (limit.type() == "Pod") usual.reset(), request.reset();
  auto compare = [&](const Amount& less, std::string_view less_name, const Amount& more, std::string_view more_name,
                     std::string_view field, const Amount& shown) {
    if (!less || !more || !(*more < *less)) return;
    out.invalid(entry(sub(path, field), name), shown->text(),
                std::string(less_name) + " value " + less->text() + " is greater than " + std::string(more_name) + " value " +
                    more->text());
  };
  compare(min, "min", max, "max", "min", min);
  compare(min, "min", request, "default request", "defaultRequest", request);
  compare(request, "default request", max, "max", "defaultRequest", request);
  compare(request, "default request", usual, "default limit", "defaultRequest", request);
  compare(min, "min", usual, "default", "default", min);
  compare(usual, "default", max, "max", "default", max);
  if (ratio) check_ratio(*ratio, min, max, entry(sub(path, "maxLimitRequestRatio"), name), out);
  if (!may_overcommit(name) && usual && request && !(*usual == *request)) {
    out.invalid(
        entry(sub(path, "defaultRequest"), name), request->text(),
        "default value " + usual->text() + " must equal to defaultRequest value " + request->text() + " in " + std::string(name));
  }
}

void check_limit(const json::value& value, const std::string& path, Findings& out) {
  view::LimitRangeItem limit(value);
  std::string_view type = limit.type();
  std::vector<std::string> problems = qualified_name_problems(type);
  out.invalid_all(sub(path, "type"), type, problems);
  bool standard = type == "Pod" || type == "Container" || type == "PersistentVolumeClaim";
  if (problems.empty() && type.find('/') == type.npos && !standard) {
    out.invalid(sub(path, "type"), type, "must be a standard limit type or fully qualified");
  }
  std::set<std::string> names;
  const std::pair<std::string_view, const json::object*> fields[] = {{"max", &limit.max()},
                                                                     {"min", &limit.min()},
                                                                     {"default", &limit.default_()},
                                                                     {"defaultRequest", &limit.default_request()},
                                                                     {"maxLimitRequestRatio", &limit.max_limit_request_ratio()}};
  for (auto [field, amounts] : fields) {
    if (type == "Pod" && field.starts_with("default")) {
      if (!amounts->empty()) out.forbidden(sub(path, field), "may not be specified when `type` is 'Pod'");
      continue;
    }
    for (const auto& pair : *amounts) {
      std::string at = entry(sub(path, field), pair.key());
      if (type == "Pod" || type == "Container") check_container_resource_name(out, at, pair.key());
      else check_resource_name(out, at, pair.key());
      names.emplace(pair.key());
    }
  }
  if (type == "PersistentVolumeClaim" && !limit.min().contains("storage") && !limit.max().contains("storage")) {
    out.required(sub(path, "limits"), "either minimum or maximum storage value is required, but neither was provided");
  }
  for (const std::string& name : names) check_limit_amounts(limit, name, path, out);
}

void check_limit_spec(const json::value& spec, const std::string& path, Findings& out) {
  std::set<std::string_view> types;
  view::Range<view::LimitRangeItem> limits = view::LimitRangeSpec(spec).limits();
  for (size_t i = 0; i < limits.size(); ++i) {
    std::string_view type = limits[i].type();
    if (!types.insert(type).second) out.duplicate(sub(item(sub(path, "limits"), i), "type"), type);
  }
}

// ---- ResourceQuota ----

constexpr std::string_view kScopes[] = {"Terminating",          "NotTerminating", "BestEffort",
                                        "NotBestEffort",        "PriorityClass",  "CrossNamespacePodAffinity",
                                        "VolumeAttributesClass"};

bool is_scope(std::string_view scope) { return std::find(std::begin(kScopes), std::end(kScopes), scope) != std::end(kScopes); }

bool scope_fits(std::string_view scope, std::string_view resource) {
  bool pods = resource == "pods", claims = resource == "persistentvolumeclaims" || resource == "requests.storage";
  bool compute = false;
  for (std::string_view name : {"cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"})
    compute = compute || resource == name;
  if (scope == "BestEffort") return pods;
  if (scope == "VolumeAttributesClass") return claims;
  return is_scope(scope) ? pods || compute : true;
}

bool fits_all(std::string_view scope, view::ResourceQuotaSpec spec) {
  for (const auto& pair : spec.hard()) {
    if (is_quota_resource(pair.key()) && !scope_fits(scope, pair.key())) return false;
  }
  return true;
}

bool conflicting(const std::set<std::string_view>& scopes) {
  return (scopes.contains("BestEffort") && scopes.contains("NotBestEffort")) ||
         (scopes.contains("Terminating") && scopes.contains("NotTerminating"));
}

void check_scopes(view::ResourceQuotaSpec spec, const std::string& path, Findings& out) {
  const json::array& scopes = spec.scopes().raw();
  std::set<std::string_view> all;
  for (std::string_view scope : spec.scopes()) {
    if (!is_scope(scope)) out.invalid_json(path, scopes, "unsupported scope");
    if (!fits_all(scope, spec)) out.invalid_json(path, scopes, "unsupported scope applied to resource");
    all.insert(scope);
  }
  if (conflicting(all)) out.invalid_json(path, scopes, "conflicting scopes");
}

void check_scope_selector(view::ResourceQuotaSpec spec, const std::string& path, Findings& out) {
  constexpr std::string_view kMustExist =
      "must be 'Exist' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
      "ResourceQuotaScopeBestEffort, "
      "ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";
  std::set<std::string_view> all;
  for (view::ScopedResourceSelectorRequirement requirement : spec.scope_selector().match_expressions()) {
    std::string_view scope = requirement.scope_name(), op = requirement.operator_();
    const json::array& values = requirement.values().raw();
    if (!is_scope(scope)) out.invalid(sub(path, "scopeName"), scope, "unsupported scope");
    if (!fits_all(scope, spec)) out.invalid_json(path, spec.scope_selector().raw(), "unsupported scope applied to resource");
    bool valued = scope == "PriorityClass" || scope == "VolumeAttributesClass";
    if (is_scope(scope) && !valued && op != "Exists") out.invalid(sub(path, "operator"), op, kMustExist);
    if (op == "In" || op == "NotIn") {
      if (values.empty())
        out.required(sub(path, "values"), "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector");
    } else if (op == "Exists" || op == "DoesNotExist") {
      if (!values.empty()) {
        out.invalid_json(sub(path, "values"), values,
                         "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector");
      }
    } else {
      out.invalid(sub(path, "operator"), op, "not a valid selector operator");
    }
    all.insert(scope);
  }
  if (conflicting(all))
    out.invalid_json(path, spec.has_scopes() ? json::value(spec.scopes().raw()) : json::value(), "conflicting scopes");
}

void check_hard(const json::object& amounts, const std::string& path, Findings& out) {
  for (const auto& pair : amounts) {
    check_quota_resource_name(out, entry(path, pair.key()), pair.key());
    check_resource_amount(out, entry(path, pair.key()), pair.key(), pair.value());
  }
}

void check_quota_spec(const json::value& value, const std::string& path, Findings& out) {
  view::ResourceQuotaSpec spec(value);
  check_hard(spec.hard(), sub(path, "hard"), out);
  check_scopes(spec, sub(path, "scopes"), out);
  check_scope_selector(spec, sub(path, "scopeSelector.matchExpressions"), out);
}

constexpr NamedValidationRule kQuotaChecks[] = {
    {"io.k8s.api.core.v1.LimitRangeSpec", check_limit_spec},
    {"io.k8s.api.core.v1.LimitRangeItem", check_limit},
    {"io.k8s.api.core.v1.ResourceQuotaSpec", check_quota_spec},
};

std::set<std::string_view> scopes_of(view::ResourceQuotaSpec quota) { return {quota.scopes().begin(), quota.scopes().end()}; }

}  // namespace

std::span<const NamedValidationRule> quota_rules() { return kQuotaChecks; }

void check_quota_update(const json::value& now, const json::value& before, std::string_view, Findings& out) {
  view::ResourceQuotaSpec spec = view::ResourceQuota(now).spec();
  if (scopes_of(spec) == scopes_of(view::ResourceQuota(before).spec())) return;
  out.invalid_json("spec.scopes", spec.has_scopes() ? json::value(spec.scopes().raw()) : json::value(), "field is immutable");
}

void check_quota_status(const json::value& now, const json::value&, Findings& out) {
  view::ResourceQuotaStatus status = view::ResourceQuota(now).status();
  check_hard(status.hard(), "status.hard", out);
  check_hard(status.used(), "status.used", out);
}

}  // namespace coracle::schema

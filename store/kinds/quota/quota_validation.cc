// SPDX-License-Identifier: Apache-2.0
// Validation of LimitRanges and ResourceQuotas: valid resource names, consistent amounts, compatible scopes. Source: core/v1 API
// reference, LimitRange and ResourceQuota; Kubernetes "Resource Quotas".
#include <algorithm>
#include <optional>
#include <set>

#include "runtime/base/text.h"
#include "store/kinds/quota/quota_kinds.h"
#include "store/object/quantity.h"
#include "store/schema/validate/resource.h"

namespace coracle::schema {
namespace {

// ---- LimitRange ----

using Amount = std::optional<Quantity>;

Amount amount_at(const json::value& item, std::string_view field, std::string_view name) {
  const json::value* found = get_object(item, field).if_contains(name);
  if (!found) return std::nullopt;
  auto quantity = Quantity::from_json(*found);
  return quantity ? Amount(*quantity) : std::nullopt;
}

void check_ratio(const Quantity& ratio, const Amount& min, const Amount& max, const std::string& path, Findings& out) {
  if (ratio < Quantity::of_count(1)) out.invalid(path, ratio.text(), "ratio " + ratio.text() + " is less than 1");
  if (!min || !max || min->is_zero()) return;
  double most = double(max->milli_value()) / double(min->milli_value());
  if (double(ratio.milli_value()) / 1000 <= most) return;
  out.invalid(path, ratio.text(), "ratio " + ratio.text() + " is greater than max/min = " + std::to_string(most));
}

void check_limit_amounts(const json::value& limit, std::string_view name, const std::string& path, Findings& out) {
  Amount min = amount_at(limit, "min", name), max = amount_at(limit, "max", name), usual = amount_at(limit, "default", name),
         request = amount_at(limit, "defaultRequest", name), ratio = amount_at(limit, "maxLimitRequestRatio", name);
  if (get_string(limit, "type") == "Pod") usual.reset(), request.reset();
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

void check_limit(const json::value& limit, const std::string& path, Findings& out) {
  std::string_view type = get_string(limit, "type");
  std::vector<std::string> problems = qualified_name_problems(type);
  out.invalid_all(sub(path, "type"), type, problems);
  bool standard = type == "Pod" || type == "Container" || type == "PersistentVolumeClaim";
  if (problems.empty() && type.find('/') == type.npos && !standard) {
    out.invalid(sub(path, "type"), type, "must be a standard limit type or fully qualified");
  }
  std::set<std::string> names;
  for (std::string_view field : {"max", "min", "default", "defaultRequest", "maxLimitRequestRatio"}) {
    const json::object& amounts = get_object(limit, field);
    if (type == "Pod" && field.starts_with("default")) {
      if (!amounts.empty()) out.forbidden(sub(path, field), "may not be specified when `type` is 'Pod'");
      continue;
    }
    for (const auto& pair : amounts) {
      std::string at = entry(sub(path, field), pair.key());
      if (type == "Pod" || type == "Container") check_container_resource_name(out, at, pair.key());
      else check_resource_name(out, at, pair.key());
      names.emplace(pair.key());
    }
  }
  if (type == "PersistentVolumeClaim" && !get_object(limit, "min").contains("storage") &&
      !get_object(limit, "max").contains("storage")) {
    out.required(sub(path, "limits"), "either minimum or maximum storage value is required, but neither was provided");
  }
  for (const std::string& name : names) check_limit_amounts(limit, name, path, out);
}

void check_limit_spec(const json::value& spec, const std::string& path, Findings& out) {
  std::set<std::string_view> types;
  const json::array& limits = get_array(spec, "limits");
  for (size_t i = 0; i < limits.size(); ++i) {
    std::string_view type = get_string(limits[i], "type");
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

bool fits_all(std::string_view scope, const json::value& spec) {
  for (const auto& pair : get_object(spec, "hard")) {
    if (is_quota_resource(pair.key()) && !scope_fits(scope, pair.key())) return false;
  }
  return true;
}

bool conflicting(const std::set<std::string_view>& scopes) {
  return (scopes.contains("BestEffort") && scopes.contains("NotBestEffort")) ||
         (scopes.contains("Terminating") && scopes.contains("NotTerminating"));
}

void check_scopes(const json::value& spec, const std::string& path, Findings& out) {
  const json::array& scopes = get_array(spec, "scopes");
  std::set<std::string_view> all;
  for (const json::value& value : scopes) {
    std::string_view scope = value.is_string() ? std::string_view(value.get_string()) : std::string_view();
    if (!is_scope(scope)) out.invalid_json(path, scopes, "unsupported scope");
    if (!fits_all(scope, spec)) out.invalid_json(path, scopes, "unsupported scope applied to resource");
    all.insert(scope);
  }
  if (conflicting(all)) out.invalid_json(path, scopes, "conflicting scopes");
}

void check_scope_selector(const json::value& spec, const std::string& path, Findings& out) {
  constexpr std::string_view kMustExist =
      "must be 'Exist' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
      "ResourceQuotaScopeBestEffort, "
      "ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";
  std::set<std::string_view> all;
  for (const json::value& requirement : get_array(spec, "scopeSelector.matchExpressions")) {
    std::string_view scope = get_string(requirement, "scopeName"), op = get_string(requirement, "operator");
    const json::array& values = get_array(requirement, "values");
    if (!is_scope(scope)) out.invalid(sub(path, "scopeName"), scope, "unsupported scope");
    if (!fits_all(scope, spec)) out.invalid_json(path, *find(spec, "scopeSelector"), "unsupported scope applied to resource");
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
  const json::value* scopes = find(spec, "scopes");
  if (conflicting(all)) out.invalid_json(path, scopes ? *scopes : json::value(), "conflicting scopes");
}

void check_hard(const json::object& amounts, const std::string& path, Findings& out) {
  for (const auto& pair : amounts) {
    check_quota_resource_name(out, entry(path, pair.key()), pair.key());
    check_resource_amount(out, entry(path, pair.key()), pair.key(), pair.value());
  }
}

void check_quota_spec(const json::value& spec, const std::string& path, Findings& out) {
  check_hard(get_object(spec, "hard"), sub(path, "hard"), out);
  check_scopes(spec, sub(path, "scopes"), out);
  check_scope_selector(spec, sub(path, "scopeSelector.matchExpressions"), out);
}

constexpr NamedValidationRule kQuotaChecks[] = {
    {"io.k8s.api.core.v1.LimitRangeSpec", check_limit_spec},
    {"io.k8s.api.core.v1.LimitRangeItem", check_limit},
    {"io.k8s.api.core.v1.ResourceQuotaSpec", check_quota_spec},
};

std::set<std::string> scopes_of(const json::value& quota) {
  std::set<std::string> out;
  for (const json::value& scope : get_array(quota, "spec.scopes")) {
    if (scope.is_string()) out.emplace(scope.get_string());
  }
  return out;
}

}  // namespace

std::span<const NamedValidationRule> quota_rules() { return kQuotaChecks; }

void check_quota_update(const json::value& now, const json::value& before, std::string_view, Findings& out) {
  if (scopes_of(now) == scopes_of(before)) return;
  const json::value* scopes = find(now, "spec.scopes");
  out.invalid_json("spec.scopes", scopes ? *scopes : json::value(), "field is immutable");
}

void check_quota_status(const json::value& now, const json::value&, Findings& out) {
  check_hard(get_object(now, "status.hard"), "status.hard", out);
  check_hard(get_object(now, "status.used"), "status.used", out);
}

}  // namespace coracle::schema

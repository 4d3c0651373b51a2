// SPDX-License-Identifier: Apache-2.0
// Validation of ReplicaSets and Deployments: the selector finds the template's pods, the strategy can make progress.
// Source: apps/v1 API reference.
#include "runtime/base/text.h"
#include "store/object/selector.h"
#include "store/schema/validate/findings.h"
#include "store/schema/views.h"

namespace coracle::schema {
namespace {

void check_selector_and_template(const json::value& spec, std::string_view workload, const std::string& path, Findings& out) {
  const json::value* selector = find(spec, "selector");
  view::LabelSelector view = selector ? view::LabelSelector(*selector) : view::LabelSelector();
  if (view && view.match_labels().empty() && view.match_expressions().empty()) {
    out.invalid_json(sub(path, "selector"), *selector, "empty selector is invalid for " + std::string(workload));
  } else if (view) {
    auto parsed = LabelSelector::from_json(selector);
    const json::object& labels = get_object(spec, "template.metadata.labels");
    if (parsed && !parsed->matches(labels)) {
      out.invalid_json(sub(path, "template.metadata.labels"), json::value(labels), "`selector` does not match template `labels`");
    }
  }
  std::string_view policy = get_string(spec, "template.spec.restartPolicy");
  if (policy == "OnFailure" || policy == "Never") out.not_supported(sub(path, "template.spec.restartPolicy"), policy, {"Always"});
  if (find(spec, "template.spec.activeDeadlineSeconds")) {
    out.forbidden(sub(path, "template.spec.activeDeadlineSeconds"), "activeDeadlineSeconds in ReplicaSet is not Supported");
  }
}

void check_counts(const json::value& spec, const std::string& path, Findings& out) {
  for (std::string_view name : {"replicas", "minReadySeconds", "revisionHistoryLimit"}) {
    out.not_negative(sub(path, name), get_int(spec, name));
  }
}

void check_replica_set_spec(const json::value& value, const std::string& path, Findings& out) {
  check_counts(value, path, out);
  check_selector_and_template(value, "deployment", path, out);
}

void check_deployment_spec(const json::value& value, const std::string& path, Findings& out) {
  check_counts(value, path, out);
  check_selector_and_template(value, "deployment", path, out);
  view::DeploymentSpec spec(value);
  if (!spec.has_progress_deadline_seconds()) return;
  out.not_negative(sub(path, "progressDeadlineSeconds"), spec.progress_deadline_seconds());
  if (spec.progress_deadline_seconds() <= spec.min_ready_seconds()) {
    out.invalid(sub(path, "progressDeadlineSeconds"), spec.progress_deadline_seconds(), "must be greater than minReadySeconds");
  }
}

void check_strategy(const json::value& value, const std::string& path, Findings& out) {
  view::DeploymentStrategy strategy(value);
  if (strategy.type() == "Recreate" && strategy.has_rolling_update()) {
    out.forbidden(sub(path, "rollingUpdate"), "may not be specified when strategy `type` is 'Recreate'");
  }
  if (strategy.type() == "RollingUpdate" && !strategy.has_rolling_update()) {
    out.required(sub(path, "rollingUpdate"), "this should be defaulted and never be nil");
  }
}

// The number, or the percentage; -1 when it is neither.
int64_t amount(Findings& out, const std::string& path, const json::value* value) {
  if (!value) return -1;
  if (value->is_int64()) {
    out.not_negative(path, value->get_int64());
    return value->get_int64();
  }
  std::string_view text = value->is_string() ? std::string_view(value->get_string()) : "";
  auto percent = text.ends_with('%') ? parse_number<uint32_t>(text.substr(0, text.size() - 1)) : std::nullopt;
  if (percent) return *percent;
  out.invalid(path, text, "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used "
                          "for validation is '[0-9]+%')");
  return -1;
}

void check_rolling_update(const json::value& value, const std::string& path, Findings& out) {
  view::RollingUpdateDeployment rolling(value);
  int64_t unavailable = amount(out, sub(path, "maxUnavailable"), rolling.max_unavailable());
  int64_t surge = amount(out, sub(path, "maxSurge"), rolling.max_surge());
  if (unavailable == 0 && surge == 0) {
    out.invalid_json(sub(path, "maxUnavailable"), *rolling.max_unavailable(), "may not be 0 when `maxSurge` is 0");
  }
  if (rolling.max_unavailable() && rolling.max_unavailable()->is_string() && unavailable > 100) {
    out.invalid_json(sub(path, "maxUnavailable"), *rolling.max_unavailable(), "must not be greater than 100%");
  }
}

constexpr NamedValidationRule kRules[] = {
    {"io.k8s.api.apps.v1.ReplicaSetSpec", check_replica_set_spec},
    {"io.k8s.api.apps.v1.DeploymentSpec", check_deployment_spec},
    {"io.k8s.api.apps.v1.DeploymentStrategy", check_strategy},
    {"io.k8s.api.apps.v1.RollingUpdateDeployment", check_rolling_update},
};

}  // namespace

std::span<const NamedValidationRule> workload_rules() { return kRules; }

void check_workload_update(const json::value& now, const json::value& before, std::string_view, Findings& out) {
  check_immutable(out, "spec.selector", find(now, "spec.selector"), find(before, "spec.selector"));
}

}  // namespace coracle::schema

// SPDX-License-Identifier: Apache-2.0
// Validation of ReplicaSets, Deployments and ReplicationControllers: the selector matches the template, and the strategy can make
// progress. Source: apps/v1 and core/v1 API reference.
#include "store/kinds/workload/workload_validation.h"

#include "store/kinds/workload/workload_kinds.h"
#include "store/object/selector.h"
#include "store/schema/validate/syntax.h"
#include "store/schema/views.h"

namespace coracle::schema {
namespace {

const json::object& template_labels(const json::value& spec) {
  return view::DeploymentSpec(spec).template_().metadata().labels();
}

void check_workload_counts(const json::value& spec, const std::string& path, Findings& out) {
  for (std::string_view name : {"replicas", "minReadySeconds", "revisionHistoryLimit"}) {
    out.not_negative(sub(path, name), get_int(spec, name));
  }
}

void check_replica_set_spec(const json::value& spec, const std::string& path, Findings& out) {
  check_workload_counts(spec, path, out);
  check_selector_and_template(spec, "deployment", path, out);
  check_endless_template(spec, "ReplicaSet", path, out);
}

void check_deployment_spec(const json::value& value, const std::string& path, Findings& out) {
  check_replica_set_spec(value, path, out);
  view::DeploymentSpec spec(value);
  if (!spec.has_progress_deadline_seconds()) return;
  int64_t seconds = spec.progress_deadline_seconds();
  out.not_negative(sub(path, "progressDeadlineSeconds"), seconds);
  if (seconds <= spec.min_ready_seconds()) {
    out.invalid(sub(path, "progressDeadlineSeconds"), seconds, "must be greater than minReadySeconds");
  }
}

void check_strategy(const json::value& strategy, const std::string& path, Findings& out) {
  std::string_view type = view::DeploymentStrategy(strategy).type();
  bool rolling = view::DeploymentStrategy(strategy).has_rolling_update();
  if (type == "Recreate" && rolling) {
    out.forbidden(sub(path, "rollingUpdate"), "may not be specified when strategy `type` is 'Recreate'");
  } else if (type == "RollingUpdate" && !rolling) {
    out.required(sub(path, "rollingUpdate"), "this should be defaulted and never be nil");
  } else if (type != "Recreate" && type != "RollingUpdate") {
    out.not_supported_json(path, json::object{{"Type", type}, {"RollingUpdate", nullptr}}, {"Recreate", "RollingUpdate"});
  }
}

void check_rolling_update(const json::value& value, const std::string& path, Findings& out) {
  view::RollingUpdateDeployment rolling(value);
  const json::value *unavailable = rolling.max_unavailable(), *surge = rolling.max_surge();
  check_amount(out, sub(path, "maxUnavailable"), unavailable);
  check_amount(out, sub(path, "maxSurge"), surge);
  if (unavailable && amount_of(unavailable) == 0 && amount_of(surge) == 0) {
    out.invalid_json(sub(path, "maxUnavailable"), *unavailable, "may not be 0 when `maxSurge` is 0");
  }
  check_at_most_all(out, sub(path, "maxUnavailable"), unavailable);
}

void check_controller_spec(const json::value& spec, const std::string& path, Findings& out) {
  check_workload_counts(spec, path, out);
  const json::object& selector = view::ReplicationControllerSpec(spec).selector();
  if (selector.empty()) out.required(sub(path, "selector"));
  if (!view::ReplicationControllerSpec(spec).has_template_()) return out.required(sub(path, "template"));
  if (!selector.empty()) check_template_labels(spec, LabelSelector::from_map(selector).matches(template_labels(spec)), path, out);
  check_endless_template(spec, "ReplicationController", path, out);
}

constexpr NamedValidationRule kWorkloadChecks[] = {
    {"io.k8s.api.apps.v1.ReplicaSetSpec", check_replica_set_spec},
    {"io.k8s.api.apps.v1.DeploymentSpec", check_deployment_spec},
    {"io.k8s.api.apps.v1.DeploymentStrategy", check_strategy},
    {"io.k8s.api.apps.v1.RollingUpdateDeployment", check_rolling_update},
    {"io.k8s.api.core.v1.ReplicationControllerSpec", check_controller_spec},
};

// ---- status ----

void check_not_negative(Findings& out, const json::value& status, std::initializer_list<std::string_view> names) {
  for (std::string_view name : names) out.not_negative(sub("status", name), get_int(status, name));
}

void check_within(Findings& out, const json::value& status, std::initializer_list<std::string_view> names, std::string_view most,
                  std::string_view words) {
  for (std::string_view name : names) {
    int64_t number = get_int(status, name);
    if (number > get_int(status, most)) out.invalid(sub("status", name), number, words);
  }
}

// All workloads have the count at the same place.
void check_collisions(Findings& out, const json::value& now, const json::value& before) {
  int64_t count = view::Deployment(now).status().collision_count();
  out.not_negative("status.collisionCount", count);
  if (count < view::Deployment(before).status().collision_count())
    out.invalid("status.collisionCount", count, "cannot be decremented");
}

const json::value& status_of(const json::value& object) {
  static const json::value none = json::object();
  const json::value* status = view::Deployment(object).status().pointer();
  return status ? *status : none;
}

constexpr std::string_view kMoreThanAll = "cannot be greater than status.replicas";

}  // namespace

// All workloads but ReplicationControllers have the same selector, and all have the template at the same place.
void check_selector_and_template(const json::value& spec, std::string_view workload, const std::string& path, Findings& out) {
  view::LabelSelector viewed = view::DeploymentSpec(spec).selector();
  const json::value* selector = viewed.pointer();
  const bool given = bool(viewed);
  if (given && viewed.match_labels().empty() && viewed.match_expressions().empty()) {
    out.invalid_json(sub(path, "selector"), *selector, "empty selector is invalid for " + std::string(workload));
    return;
  }
  auto matches = LabelSelector::matches_once(given ? selector : nullptr, template_labels(spec));
  if (matches) return check_template_labels(spec, *matches, path, out);
  if (workload == "daemonset") return;  // the selector's errors are sufficient
  out.invalid_json(sub(path, "selector"), *selector, workload == "deployment" ? "invalid label selector" : "");
}

void check_template_labels(const json::value& spec, bool matches, const std::string& path, Findings& out) {
  if (matches) return;
  view::ObjectMeta metadata = view::DeploymentSpec(spec).template_().metadata();
  out.invalid_json(sub(path, "template.metadata.labels"), metadata.has_labels() ? json::value(metadata.labels()) : json::value(),
                   "`selector` does not match template `labels`");
}

void check_endless_template(const json::value& spec, std::string_view workload, const std::string& path, Findings& out) {
  view::PodSpec pod = view::DeploymentSpec(spec).template_().spec();
  std::string_view policy = pod.restart_policy();
  if (policy != "Always") out.not_supported(sub(path, "template.spec.restartPolicy"), policy, {"Always"});
  if (pod.has_active_deadline_seconds()) {
    out.forbidden(sub(path, "template.spec.activeDeadlineSeconds"),
                  "activeDeadlineSeconds in " + std::string(workload) + " is not Supported");
  }
}

std::span<const NamedValidationRule> workload_rules() { return kWorkloadChecks; }

void check_workload_update(const json::value& now, const json::value& before, std::string_view, Findings& out) {
  check_immutable(out, "spec.selector", view::Deployment(now).spec().selector().pointer(),
                  view::Deployment(before).spec().selector().pointer());
}

void check_replica_set_status(const json::value& now, const json::value&, Findings& out) {
  const json::value& status = status_of(now);
  check_not_negative(out, status,
                     {"replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration"});
  check_within(out, status, {"fullyLabeledReplicas", "readyReplicas", "availableReplicas"}, "replicas", kMoreThanAll);
  check_within(out, status, {"availableReplicas"}, "readyReplicas", "cannot be greater than readyReplicas");
}

void check_deployment_status(const json::value& now, const json::value& before, Findings& out) {
  const json::value& status = status_of(now);
  check_not_negative(
      out, status,
      {"observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas"});
  check_collisions(out, now, before);
  check_within(out, status, {"updatedReplicas", "readyReplicas", "availableReplicas"}, "replicas", kMoreThanAll);
  check_within(out, status, {"availableReplicas"}, "readyReplicas", "cannot be greater than readyReplicas");
}

void check_stateful_set_status(const json::value& now, const json::value& before, Findings& out) {
  const json::value& status = status_of(now);
  check_not_negative(
      out, status,
      {"replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas", "observedGeneration"});
  check_collisions(out, now, before);
  check_within(out, status, {"readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"}, "replicas",
               kMoreThanAll);
  check_within(out, status, {"availableReplicas"}, "readyReplicas", "cannot be greater than status.readyReplicas");
}

void check_daemon_set_status(const json::value& now, const json::value& before, Findings& out) {
  check_not_negative(out, status_of(now),
                     {"currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady",
                      "observedGeneration", "updatedNumberScheduled", "numberAvailable", "numberUnavailable"});
  check_collisions(out, now, before);
}

}  // namespace coracle::schema

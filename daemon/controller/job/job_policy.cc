// SPDX-License-Identifier: Apache-2.0
// The policies of a Job: rules for failed pods, rules for success, and the back-off after failures. See job.h. Source: Kubernetes
// Jobs, "Pod failure policy", "Success policy", "Pod backoff failure policy".
#include <algorithm>

#include "daemon/controller/job/job.h"

namespace coracle::controller {
namespace {

bool code_fits(view::PodFailurePolicyOnExitCodesRequirement wanted, int64_t code) {
  if (code == 0) return false;
  bool named = false;
  for (int64_t value : wanted.values()) named |= value == code;
  return wanted.operator_() == "In" ? named : wanted.operator_() == "NotIn" && !named;
}

// The first container whose exit code matches.
std::optional<view::ContainerStatus> fitting(view::Range<view::ContainerStatus> all,
                                             view::PodFailurePolicyOnExitCodesRequirement wanted) {
  for (view::ContainerStatus status : all) {
    if (!status.state().has_terminated()) continue;
    if (wanted.has_container_name() && wanted.container_name() != status.name()) continue;
    if (code_fits(wanted, status.state().terminated().exit_code())) return status;
  }
  return std::nullopt;
}

std::optional<std::string_view> fitting(view::Pod pod, view::Range<view::PodFailurePolicyOnPodConditionsPattern> wanted) {
  for (view::PodCondition condition : pod.status().conditions())
    for (view::PodFailurePolicyOnPodConditionsPattern pattern : wanted)
      if (condition.type() == pattern.type() && condition.status() == (pattern.status().empty() ? "True" : pattern.status()))
        return condition.type();
  return std::nullopt;
}

}  // namespace

FailureRule failure_rule(view::Job job, const Object& object) {
  view::Pod pod(object);
  size_t number = 0;
  for (view::PodFailurePolicyRule rule : job.spec().pod_failure_policy().rules()) {
    std::string tail = " matching " + std::string(rule.action()) + " rule at index " + std::to_string(number++);
    bool fails_job = rule.action() == "FailJob";
    if (rule.has_on_exit_codes()) {
      auto status = fitting(pod.status().container_statuses(), rule.on_exit_codes());
      if (!status) status = fitting(pod.status().init_container_statuses(), rule.on_exit_codes());
      if (!status) continue;
      std::string message = "Container " + std::string(status->name()) + " for pod " + object.key().text() +
                            " failed with exit code " + std::to_string(status->state().terminated().exit_code()) + tail;
      return {rule.action(), fails_job ? message : ""};
    }
    if (auto type = fitting(pod, rule.on_pod_conditions())) {
      std::string message = "Pod " + object.key().text() + " has condition " + std::string(*type) + tail;
      return {rule.action(), fails_job ? message : ""};
    }
  }
  return {};
}

std::optional<std::string> success_rule(view::Job job, const IndexSet& succeeded) {
  if (succeeded.empty()) return std::nullopt;
  size_t number = 0;
  for (view::SuccessPolicyRule rule : job.spec().success_policy().rules()) {
    std::string met = "Matched rules at index " + std::to_string(number++);
    if (!rule.has_succeeded_indexes()) {
      if (rule.has_succeeded_count() && succeeded.size() >= rule.succeeded_count()) return met;
      continue;
    }
    IndexSet wanted = IndexSet::parse(rule.succeeded_indexes(), job.spec().completions());
    if (wanted.empty()) continue;
    int64_t there = wanted.common(succeeded);
    if (there == wanted.size() || (rule.has_succeeded_count() && there >= rule.succeeded_count())) return met;
  }
  return std::nullopt;
}

WallTime pod_ended_at(const Object& object) {
  view::Pod pod(object);
  std::optional<WallTime> ended;
  bool all = true;
  for (view::ContainerStatus status : pod.status().container_statuses()) {
    auto at = parse_time(status.state().terminated().finished_at());
    all = all && at;
    if (at) ended = std::max(ended.value_or(*at), *at);
  }
  if (all && ended) return *ended;
  if (auto ready = pod_condition(pod, "Ready"); ready && ready->status() == "False") {
    if (auto at = parse_time(ready->last_transition_time())) return *at;
  }
  std::chrono::seconds grace = bounded_seconds(pod.metadata().deletion_grace_period_seconds());
  if (auto at = parse_time(pod.metadata().deletion_timestamp())) return *at - grace;
  return parse_time(pod.metadata().creation_timestamp()).value_or(WallTime{});
}

JobBackOff back_off_after(JobBackOff before, const std::vector<ObjectPtr>& succeeded, const std::vector<ObjectPtr>& failed) {
  std::optional<WallTime> success;
  for (const ObjectPtr& pod : succeeded) success = std::max(success.value_or(WallTime::min()), pod_ended_at(*pod));
  if (success) before = {};
  for (const ObjectPtr& pod : failed) {
    WallTime at = pod_ended_at(*pod);
    if (success && at <= *success) continue;
    before.failures++;
    before.last = std::max(before.last.value_or(at), at);
  }
  return before;
}

std::chrono::nanoseconds back_off_span(int64_t failures) {
  if (failures == 0) return std::chrono::nanoseconds::zero();
  std::chrono::seconds span = kJobBackOffFirst;
  for (int64_t i = 1; i < failures && span < kJobBackOffLongest; ++i) span *= 2;
  return std::min(span, kJobBackOffLongest);
}

}  // namespace coracle::controller

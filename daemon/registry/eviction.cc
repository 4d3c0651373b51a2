// SPDX-License-Identifier: Apache-2.0
// Eviction: deletes a pod if its disruption budget allows it, and charges the budget. Otherwise the client gets 429 and retries.
// A budget is charged once for a pod, however often its eviction is tried: what fails after the charge may be repeated. In
// Kubernetes, each try is charged. Source: Kubernetes pkg/registry/core/pod/storage/eviction.go.
#include <algorithm>

#include "daemon/quota/disruption.h"
#include "daemon/registry/registry.h"
#include "runtime/base/text.h"
#include "store/kinds/meta/conditions.h"
#include "store/kinds/pod/pod_state.h"
#include "store/object/object.h"
#include "store/object/status.h"

namespace coracle::registry {
namespace {

constexpr int kAttempts = 20;
constexpr size_t kDisruptedPodsMax = 2000;  // evictions not yet confirmed by the controller
constexpr int kLookAgainSeconds = 10;

Error would_violate(std::string cause, int retry_after_seconds) {
  ErrorDetails details;
  details.causes.push_back({"DisruptionBudget", std::move(cause), ""});
  details.retry_after_seconds = retry_after_seconds;
  return Error(Code::too_many_requests, "Cannot evict pod as it would violate the pod's disruption budget.")
      .with(std::move(details));
}

Error being_processed(const std::string& budget) {
  return would_violate("The disruption budget " + budget + " is still being processed by the server.", kLookAgainSeconds);
}

// Why the budget allows no disruption.
std::string refusal(const Object& budget) {
  view::Condition condition(quota::allowed_condition(budget.json()));
  std::string message(condition.message()), reason(condition.reason()), head = "The disruption budget " + budget.name();
  bool says_no = condition.status() == "False" && !message.empty();
  if (says_no && reason == "SyncFailed")
    return head + " does not allow evicting pods currently because it failed sync: " + message;
  view::PodDisruptionBudgetStatus status = view::PodDisruptionBudget(budget).status();
  int64_t desired = status.desired_healthy(), current = status.current_healthy();
  if (current <= desired)
    return head + " needs " + std::to_string(desired) + " healthy pods and has " + std::to_string(current) + " currently";
  if (says_no) return head + " does not allow evicting pods currently (" + reason + "): " + message;
  return head + " does not allow evicting pods currently";
}

bool has_ended_or_goes(const Object& pod) { return is_terminal(view::Pod(pod)) || pod.deleting(); }

// The pod does not serve yet or any more: its budget does not count it.
bool needs_no_budget(const Object& pod) { return has_ended_or_goes(pod) || view::Pod(pod).status().phase() == "Pending"; }

// Whether an unhealthy pod may be evicted without charging the budget.
bool goes_unhealthy(const Object& pod, const Object& budget) {
  if (is_ready(view::Pod(pod))) return false;
  view::PodDisruptionBudget view(budget);
  if (view.spec().unhealthy_pod_eviction_policy() == "AlwaysAllow") return true;
  int64_t desired = view.status().desired_healthy();
  return view.status().current_healthy() >= desired && desired > 0;
}

// Whether the budget counts the pod as disrupted already, and holds without it. An entry that may be older than the pod is of an
// earlier one of its name: times are in seconds.
bool is_charged(view::PodDisruptionBudgetStatus status, const Object& pod, WallTime now) {
  const json::value* since = status.disrupted_pods().if_contains(pod.name());
  auto time = since && since->is_string() ? parse_time(since->get_string()) : Result<WallTime>(Error(Code::invalid, ""));
  auto made = parse_time(view::Pod(pod).metadata().creation_timestamp());
  return time && made && *time > *made && now <= *time + quota::kGoesWithin &&
         status.current_healthy() >= status.desired_healthy();
}

// The budget, charged with this pod's disruption. Errors: too_many_requests, forbidden.
Result<json::value> charged(const Object& budget, const Object& pod, WallTime now) {
  view::PodDisruptionBudget view(budget);
  if (view.status().observed_generation() < view.metadata().generation()) return being_processed(budget.name());
  // The name in Kubernetes' message.
  static constexpr Kind kSingular{"policy", "v1", "PodDisruptionBudget", "poddisruptionbudget"};
  int64_t allowed = view.status().disruptions_allowed();
  if (allowed < 0) return forbidden(kSingular, budget.name(), "pdb disruptions allowed is negative");
  const bool was_charged = is_charged(view.status(), pod, now);
  if (!was_charged && view.status().disrupted_pods().size() > kDisruptedPodsMax)
    return forbidden(kSingular, budget.name(), "DisruptedPods map too big - too many evictions not confirmed by PDB controller");
  if (!was_charged && allowed == 0) return would_violate(refusal(budget), 0);
  json::value out = changeable_copy(budget);
  if (!was_charged) make(out, "status.disruptionsAllowed") = allowed - 1;
  if (!was_charged && allowed == 1) quota::set_allowed_condition(out, now);
  make_object(out, "status.disruptedPods")[pod.name()] = format_time(now);
  return out;
}

Result<DeleteOptions> delete_options(const json::value& body, Writer& writer) {
  DeleteOptions options;
  view::DeleteOptions given = view::Eviction(body).delete_options();
  view::Preconditions preconditions = given.preconditions();
  if (given.has_grace_period_seconds()) options.grace_period_seconds = given.grace_period_seconds();
  if (preconditions.has_uid()) options.uid = std::string(preconditions.uid());
  options.propagation = given.propagation_policy();
  if (preconditions.has_resource_version())  // an invalid revision matches no object
    options.revision = parse_number<Revision>(preconditions.resource_version()).value_or(0);
  for (std::string_view value : given.dry_run()) {
    if (value != "All")
      return invalid({"meta.k8s.io", "v1", "DeleteOptions", {}}, "",
                     {not_supported("deleteOptions.dryRun", to_text(json::value(given.dry_run().raw())), {"All"})});
    writer.dry_run = true;
  }
  return options;
}

bool is_another(const Object& pod, const DeleteOptions& options) {
  return (options.uid && *options.uid != pod.uid()) || (options.revision && *options.revision != pod.revision());
}

// The pod with the condition DisruptionTarget, which tells its controller that the pod did not fail by itself. Errors: conflict
// if a precondition fails.
Result<json::value> targeted(const Object& pod, const DeleteOptions& options, WallTime now) {
  if (is_another(pod, options)) return stale_conflict(kPod, pod.name());
  json::value out = changeable_copy(pod);
  json::object fresh{{"type", "DisruptionTarget"},
                     {"status", "True"},
                     {"lastTransitionTime", format_time(now)},
                     {"reason", "EvictionByEvictionAPI"},
                     {"message", "Eviction API: evicting"}};
  if (!has_true_condition(out, "DisruptionTarget"))
    make_condition(make_array(out, "status.conditions"), "DisruptionTarget") = std::move(fresh);
  return out;
}

json::value evicted() {
  json::value answer = success_status();
  answer.get_object()["code"] = 201;
  return answer;
}

}  // namespace

Result<json::value> Registry::evict(const Key& key, json::value body, const Writer& asked) {
  Writer writer = asked;
  DeleteOptions options = TRY(delete_options(body, writer));
  for (int attempt = 1;; attempt++) {
    ObjectPtr pod = TRY(get(kPod, key));
    if (!needs_no_budget(*pod)) break;
    DeleteOptions exactly = options;
    if (!has_ended_or_goes(*pod) && !exactly.revision)
      exactly.revision = pod->revision();  // it must not have become ready in the meantime
    auto removed = target_and_remove(key, exactly, writer);
    if (removed) return evicted();
    bool again = removed.error().code() == Code::conflict && !options.revision && attempt < kAttempts;
    if (!again) return removed.take_error();
  }

  ObjectPtr pod = TRY(get(kPod, key));
  std::vector<ObjectPtr> budgets;
  engine::ListOptions here;
  here.ns = key.ns;
  here.matches = [&](const Object& budget) { return quota::covers(budget, *pod); };
  auto found = engine_.list(kPodDisruptionBudget, here);
  if (found) budgets = std::move(found->items);
  if (budgets.size() > 1)
    return Error(Code::internal,
                 "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.");
  if (budgets.empty()) {
    TRY(target_and_remove(key, options, writer));
    return evicted();
  }

  const Object& budget = *budgets.front();
  if (goes_unhealthy(*pod, budget)) {
    DeleteOptions exactly = options;
    exactly.revision = pod->revision();
    auto removed = target_and_remove(key, exactly, writer);
    if (removed) return evicted();
    bool changed = removed.error().code() == Code::conflict && !options.revision;
    return changed ? being_processed(budget.name()) : removed.take_error();
  }
  if (is_another(*pod, options)) return stale_conflict(kPod, key.name);  // nothing is charged for it
  const schema::KindPtr served = TRY(catalogs_.find(budget.kind()));
  const schema::KindInfo& info = *served;
  Writer internal = writer;
  internal.user = nullptr, internal.field_manager.clear();
  auto charge = modify(
      {info, kinds::strategy_of(info.kind), budget.key(), "status"},
      [&](const Object& now) { return charged(now, *pod, clock_.now()); }, true, internal);
  if (!charge) return charge.take_error();
  TRY(target_and_remove(key, options, writer));
  return evicted();
}

Result<void> Registry::target_and_remove(const Key& key, DeleteOptions options, const Writer& writer) {
  if (!writer.dry_run) {
    Writer internal = writer;
    internal.user = nullptr, internal.field_manager.clear();
    const schema::KindPtr served = TRY(catalogs_.find(kPod));
    const schema::KindInfo& info = *served;
    Written written = TRY(modify(
        {info, kinds::strategy_of(info.kind), key, "status"},
        [&](const Object& now) { return targeted(now, options, clock_.now()); }, !options.revision, internal));
    if (options.revision) options.revision = written.object->revision();
  }
  TRY(remove(kPod, key, options, writer));
  return {};
}

}  // namespace coracle::registry

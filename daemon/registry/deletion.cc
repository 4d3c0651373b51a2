// SPDX-License-Identifier: Apache-2.0
// See deletion.h.
#include "daemon/registry/deletion.h"

#include "daemon/registry/metadata.h"
#include "runtime/base/text.h"
#include "store/object/status.h"

namespace coracle::registry {
namespace {

constexpr int64_t kPodGraceSeconds = 30;

Result<void> check_preconditions(const Object& object, const DeleteOptions& options) {
  const Kind& kind = object.kind();
  if (!options.uid.empty() && options.uid != object.uid())
    return conflict(kind, object.name(), "Precondition failed: UID in precondition: " + options.uid + ", UID in object meta: " + object.uid());
  if (options.revision != 0 && options.revision != object.revision())
    return conflict(kind, object.name(), "Precondition failed: ResourceVersion in precondition: " + std::to_string(options.revision) +
                                             ", ResourceVersion in object meta: " + std::to_string(object.revision()));
  return {};
}

// The seconds that a pod gets. One that no node has, or that has ended, needs none.
int64_t grace_of(const Object& pod, const DeleteOptions& options) {
  int64_t grace = options.grace_period_seconds.value_or(get_int(pod.json(), "spec.terminationGracePeriodSeconds", kPodGraceSeconds));
  if (grace < 0) grace = 1;
  std::string_view phase = get_string(pod.json(), "status.phase");
  if (get_string(pod.json(), "spec.nodeName").empty() || phase == "Succeeded" || phase == "Failed") grace = 0;
  return grace;
}

Result<void> apply_propagation(json::value& body, const std::string& propagation) {
  if (!propagation.empty() && propagation != "Background" && propagation != "Foreground" && propagation != "Orphan")
    return Error(Code::invalid, "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Unsupported value: " + coracle::quoted(propagation) +
                                    ": supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"");
  if (propagation.empty()) return {};  // finalizers that say otherwise are respected
  remove_finalizer(body, "foregroundDeletion");
  remove_finalizer(body, "orphan");
  if (propagation == "Foreground") add_finalizer(body, "foregroundDeletion");
  if (propagation == "Orphan") add_finalizer(body, "orphan");
  return {};
}

void mark(json::value& body, int64_t grace, const DeletionRules& rules, WallTime now) {
  json::object& metadata = metadata_of(body);
  bool first = !metadata.contains("deletionTimestamp");
  metadata["deletionTimestamp"] = format_time(now + std::chrono::seconds(grace));
  metadata["deletionGracePeriodSeconds"] = grace;
  if (first && rules.counts_generations) count_generation(body, body);
}

bool held(const json::value& body, const DeletionRules& rules) {
  return has_finalizers(body) || (rules.awaits_finalize && !get_array(body, "spec.finalizers").empty());
}

}  // namespace

Result<DeletionPlan> plan_deletion(const Object& object, const DeleteOptions& options, const DeletionRules& rules, WallTime now) {
  TRY(check_preconditions(object, options));
  json::value body = object.json();
  TRY(apply_propagation(body, options.propagation));
  int64_t grace = rules.graceful ? grace_of(object, options) : 0;
  if (object.deleting()) {
    // A later deletion may only shorten what the first one granted.
    int64_t granted = get_int(object.json(), "metadata.deletionGracePeriodSeconds");
    bool shorter = rules.graceful && grace < granted && (options.grace_period_seconds || grace == 0);
    if (!held(body, rules) && (grace == 0 || granted == 0)) return DeletionPlan{DeletionPlan::Do::remove, {}};
    if (shorter) {
      mark(body, grace, rules, now);
      return DeletionPlan{DeletionPlan::Do::mark, std::move(body)};
    }
    if (body == object.json()) return DeletionPlan{DeletionPlan::Do::nothing, {}};
    return DeletionPlan{DeletionPlan::Do::mark, std::move(body)};  // the propagation changed
  }
  if (grace == 0 && !held(body, rules)) return DeletionPlan{DeletionPlan::Do::remove, {}};
  mark(body, grace, rules, now);
  if (rules.awaits_finalize) make(body, "status.phase") = "Terminating";
  return DeletionPlan{DeletionPlan::Do::mark, std::move(body)};
}

bool may_go(const json::value& object, const DeletionRules& rules) {
  if (get_string(object, "metadata.deletionTimestamp").empty() || held(object, rules)) return false;
  return !rules.graceful || get_int(object, "metadata.deletionGracePeriodSeconds") == 0;
}

}  // namespace coracle::registry

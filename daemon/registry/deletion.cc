// SPDX-License-Identifier: Apache-2.0
// See deletion.h.
#include "daemon/registry/deletion.h"

#include <algorithm>

#include "daemon/registry/metadata.h"
#include "runtime/base/text.h"
#include "store/kinds/meta/metadata.h"
#include "store/kinds/pod/pod_state.h"
#include "store/object/object.h"
#include "store/object/status.h"

namespace coracle::registry {
namespace {

constexpr int64_t kPodGraceSeconds = 30;

// Source: kubernetes pkg/registry/core/namespace/storage, which has its own words.
Result<void> check_preconditions_of_namespace(const Object& object, const DeleteOptions& options) {
  auto failed = [&](std::string_view what, const std::string& wanted, const std::string& found) {
    return conflict(object.kind(), object.name(),
                    "Precondition failed: " + std::string(what) + " in precondition: " + wanted + ", " + std::string(what) +
                        " in object meta: " + found);
  };
  if (options.uid && *options.uid != object.uid()) return failed("UID", *options.uid, object.uid());
  if (options.revision && *options.revision != object.revision())
    return failed("ResourceVersion", std::to_string(*options.revision), std::to_string(object.revision()));
  return {};
}

Result<void> check_preconditions(const Object& object, const DeleteOptions& options) {
  Kind kind = object.kind();
  kind.resource = kind.kind;  // Kubernetes' message has the kind here
  if (options.uid && *options.uid != object.uid())
    return conflict(kind, object.name(),
                    "the UID in the precondition (" + *options.uid + ") does not match the UID in record (" + object.uid() +
                        "). The object might have been deleted and then recreated");
  if (options.revision && *options.revision != object.revision())
    return conflict(kind, object.name(),
                    "the ResourceVersion in the precondition (" + std::to_string(*options.revision) +
                        ") does not match the ResourceVersion in record (" + std::to_string(object.revision()) +
                        "). The object might have been modified");
  return {};
}

int64_t at_least_graceful(int64_t grace) { return grace < 0 ? 1 : grace; }

// The grace period of a pod in seconds; 0 if it has no node or has ended.
int64_t grace_of(const Object& pod, const DeleteOptions& options) {
  int64_t grace = at_least_graceful(
      options.grace_period_seconds.value_or(view::Pod(pod).spec().termination_grace_period_seconds_or(kPodGraceSeconds)));
  if (view::Pod(pod).spec().node_name().empty() || is_terminal(view::Pod(pod))) grace = 0;
  return grace;
}

bool names_finalizer(const json::value& body, std::string_view name) {
  auto all = metadata_of(body).finalizers();
  return std::find(all.begin(), all.end(), name) != all.end();
}

Result<void> apply_propagation(json::value& body, const std::string& propagation, const schema::KindTraits& traits) {
  if (!propagation.empty() && propagation != "Background" && propagation != "Foreground" && propagation != "Orphan")
    return Error(Code::invalid, "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Unsupported value: " +
                                    coracle::quoted(propagation) +
                                    ": supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"");
  if (traits.no_owners) {  // nobody would take the finalizers off
    remove_finalizer(body, "foregroundDeletion");
    remove_finalizer(body, "orphan");
    return {};
  }
  if (propagation.empty()) {  // finalizers with another propagation policy are respected
    bool said = names_finalizer(body, "foregroundDeletion") || names_finalizer(body, "orphan");
    if (traits.orphans_dependents && !said) add_finalizer(body, "orphan");
    return {};
  }
  remove_finalizer(body, "foregroundDeletion");
  remove_finalizer(body, "orphan");
  if (propagation == "Foreground") add_finalizer(body, "foregroundDeletion");
  if (propagation == "Orphan") add_finalizer(body, "orphan");
  return {};
}

void mark(json::value& body, int64_t grace, const schema::KindTraits& traits, WallTime now) {
  json::object& metadata = make_metadata(body);
  bool first = !metadata.contains("deletionTimestamp");
  metadata["deletionTimestamp"] = format_time(now + bounded_seconds(grace));
  metadata["deletionGracePeriodSeconds"] = grace;
  if (first && traits.counts_generations) count_generation(body, body);
}

bool is_being_emptied(const json::value& body, const schema::KindTraits& traits) {
  return traits.awaits_finalize && !view::Namespace(body).spec().finalizers().empty();
}

bool held(const json::value& body, const schema::KindTraits& traits) {
  return has_finalizers(body) || is_being_emptied(body, traits);
}

// A later deletion can only shorten the grace period. If it does, its propagation policy counts too.
Result<DeletionPlan> shorten(const Object& object, int64_t granted, const DeleteOptions& options,
                             const schema::KindTraits& traits, WallTime now) {
  int64_t grace = at_least_graceful(options.grace_period_seconds.value_or(granted));
  if (grace >= granted) return DeletionPlan{DeletionPlan::Do::pending, {}};
  json::value body = changeable_copy(object);
  TRY(apply_propagation(body, options.propagation, traits));
  if (grace == 0 && !held(body, traits)) return DeletionPlan{DeletionPlan::Do::remove, {}};
  WallTime began = parse_time(metadata_of(body).deletion_timestamp()).value_or(now) - bounded_seconds(granted);
  bool overdue = began + bounded_seconds(grace) < now;
  if (overdue && grace > 0) grace = 1;  // not 0, so that the kubelet sees a shortened period
  json::object& metadata = make_metadata(body);
  metadata["deletionTimestamp"] = format_time(overdue ? now : began + bounded_seconds(grace));
  metadata["deletionGracePeriodSeconds"] = grace;
  return DeletionPlan{DeletionPlan::Do::mark, std::move(body)};
}

}  // namespace

Result<DeletionPlan> plan_deletion(const Object& object, const DeleteOptions& options, const schema::KindTraits& traits,
                                   WallTime now) {
  TRY(traits.awaits_finalize ? check_preconditions_of_namespace(object, options) : check_preconditions(object, options));
  int64_t granted = object.deleting() ? metadata_of(object).deletion_grace_period_seconds() : 0;
  if (traits.graceful && granted > 0) return shorten(object, granted, options, traits, now);
  if (object.deleting() && is_being_emptied(object.json(), traits)) return DeletionPlan{DeletionPlan::Do::pending, {}};
  json::value body = changeable_copy(object);
  TRY(apply_propagation(body, options.propagation, traits));
  if (object.deleting()) {
    if (!held(body, traits)) return DeletionPlan{DeletionPlan::Do::remove, {}};
    if (same_json(body, object.json())) return DeletionPlan{DeletionPlan::Do::nothing, {}};
    return DeletionPlan{DeletionPlan::Do::mark, std::move(body)};  // the propagation policy has changed
  }
  int64_t grace = traits.graceful ? grace_of(object, options) : 0;
  if (grace == 0 && !held(body, traits)) return DeletionPlan{DeletionPlan::Do::remove, {}};
  mark(body, grace, traits, now);
  if (traits.awaits_finalize) make(body, "status.phase") = "Terminating";
  return DeletionPlan{DeletionPlan::Do::mark, std::move(body)};
}

bool may_go(const json::value& object, const schema::KindTraits& traits) {
  view::ObjectMeta metadata = metadata_of(object);
  if (metadata.deletion_timestamp().empty() || held(object, traits)) return false;
  return !traits.graceful || metadata.deletion_grace_period_seconds() == 0;
}

}  // namespace coracle::registry

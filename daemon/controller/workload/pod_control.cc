// SPDX-License-Identifier: Apache-2.0
// See pod_control.h.
#include "daemon/controller/workload/pod_control.h"

#include <algorithm>

#include "store/object/selector.h"

namespace coracle::controller {

bool namespace_terminating(const Error& error) {
  if (!error.details()) return false;
  const auto& causes = error.details()->causes;
  return std::any_of(causes.begin(), causes.end(), [](const Cause& c) { return c.reason == "NamespaceTerminating"; });
}

json::value pod_from_template(const Object& owner, const json::value& pod_template) {
  json::object metadata{{"generateName", owner.name() + "-"}, {"namespace", owner.ns()}};
  view::PodTemplateSpec written(pod_template);
  if (written.metadata().has_labels()) metadata["labels"] = written.metadata().labels();
  if (written.metadata().has_annotations()) metadata["annotations"] = written.metadata().annotations();
  if (written.metadata().has_finalizers()) metadata["finalizers"] = written.metadata().finalizers().raw();
  metadata["ownerReferences"] = json::array{controller_reference(owner)};
  json::object pod{{"apiVersion", "v1"}, {"kind", "Pod"}, {"metadata", std::move(metadata)}};
  if (const json::value* spec = written.spec().pointer()) pod["spec"] = *spec;
  return pod;
}

Result<ObjectPtr> PodControl::create(const Object& owner, const json::value& pod, Failure& failure) {
  auto created = client_.create(kPod, pod);
  if (created) {
    own_.wrote(owner.key(), (*created)->revision());
    recorder_.normal(owner, "SuccessfulCreate", "Created pod: " + (*created)->name());
    return created;
  }
  if (namespace_terminating(created.error())) return ObjectPtr();
  failure = {"FailedCreate", created.error().text()};
  recorder_.warning(owner, "FailedCreate", "Error creating: " + created.error().text());
  return created.take_error().wrap("create pod");
}

Result<void> PodControl::remove(const Object& owner, const Object& pod, Failure& failure) {
  auto removed = client_.remove(kPod, pod.key(), {.uid = pod.uid()});
  if (!removed && removed.error().code() != Code::not_found) {
    failure = {"FailedDelete", removed.error().text()};
    recorder_.warning(owner, "FailedDelete", "Error deleting: " + removed.error().text());
    return removed.take_error().wrap("remove pod " + pod.name());
  }
  own_.removed(owner.key(), pod.uid());
  recorder_.normal(owner, "SuccessfulDelete", "Deleted pod: " + pod.name());
  return {};
}

void enqueue_owner(const Object& pod, const Kind& kind, const SelectorIndex& owners, const Enqueue& enqueue) {
  if (auto owner = pod.controller()) {
    if (owner->kind == kind.kind) enqueue.now({pod.ns(), owner->name});
    return;
  }
  for (Key& owner : owners.matching(pod)) enqueue.now(std::move(owner));
}

void enqueue_owners(const Informer::Change& change, const Kind& kind, const SelectorIndex& owners, const Enqueue& enqueue) {
  for (const ObjectPtr& dependent : {change.before, change.after})
    if (dependent) enqueue_owner(*dependent, kind, owners, enqueue);
}

std::optional<std::chrono::nanoseconds> next_available(const std::vector<ObjectPtr>& pods, std::chrono::seconds min_ready,
                                                       WallTime now) {
  std::optional<std::chrono::nanoseconds> next;
  for (const ObjectPtr& pod : pods) {
    auto at = pod_available_at(view::Pod(*pod), min_ready);
    if (!at || *at <= now) continue;
    if (!next || *at - now < *next) next = *at - now;
  }
  return next;
}

}  // namespace coracle::controller

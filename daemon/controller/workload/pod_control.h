// SPDX-License-Identifier: Apache-2.0
// PodControl: creates and deletes pods for controllers. Each step is recorded as an event of the owner and in its OwnWrites until
// the cache shows it. Source: Kubernetes pod control; reasons and messages of the events are Kubernetes'.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "daemon/controller/controller.h"
#include "daemon/controller/shared/common.h"
#include "store/object/selector_index.h"

namespace coracle::controller {

// The pod of an owner's template, to be created: labels, annotations and finalizers of the template, and its spec.
json::value pod_from_template(const Object& owner, const json::value& pod_template);

// The failure of a creation or deletion; both are "" if there was none.
struct Failure {
  std::string reason, message;
};

// Whether the error rejects a creation because the namespace is being deleted.
bool namespace_terminating(const Error& error);

class PodControl {
 public:
  PodControl(Client& client, EventRecorder recorder, OwnWrites& own)
      : client_(client), recorder_(std::move(recorder)), own_(own) {}

  // Returns null if the owner's namespace is being deleted. Errors: the API's, also in `failure`.
  Result<ObjectPtr> create(const Object& owner, const json::value& pod, Failure& failure);
  // Succeeds if the pod does not exist. Errors: the API's, also in `failure`.
  Result<void> remove(const Object& owner, const Object& pod, Failure& failure);

 private:
  Client& client_;
  EventRecorder recorder_;
  OwnWrites& own_;
};

// Enqueues the owner of a pod or another dependent, if it is of this kind; for an orphan, each of `owners` that would adopt it.
void enqueue_owner(const Object& pod, const Kind& kind, const SelectorIndex& owners, const Enqueue& enqueue);
// Does so for the owners before and after a change of a dependent.
void enqueue_owners(const Informer::Change& change, const Kind& kind, const SelectorIndex& owners, const Enqueue& enqueue);

// The time until the next ready pod becomes available, because no event occurs when minReadySeconds have elapsed. nullopt if
// there is none.
std::optional<std::chrono::nanoseconds> next_available(const std::vector<ObjectPtr>& pods, std::chrono::seconds min_ready,
                                                       WallTime now);

}  // namespace coracle::controller

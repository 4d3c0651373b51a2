// SPDX-License-Identifier: Apache-2.0
// PodControl: how controllers make and remove pods. Every step is told as an event of the owner and remembered in its
// OwnWrites until the cache shows it. Source: Kubernetes pod control; reasons and words of the events are Kubernetes'.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "daemon/controller/common.h"
#include "daemon/controller/controller.h"
#include "store/object/selector_cache.h"

namespace coracle::controller {

// The pod that an owner's template describes, ready to be created: labels, annotations and finalizers of the template, its spec.
json::value pod_from_template(const Object& owner, const json::value& pod_template);

// What went wrong while making or removing pods; both "" when nothing did.
struct Failure {
  std::string reason, message;
};

// The refusal of something new in a namespace that is on its way out, and everything in it with it.
bool namespace_terminating(const Error& error);

class PodControl {
 public:
  PodControl(Client& client, EventRecorder recorder, OwnWrites& own)
      : client_(client), recorder_(std::move(recorder)), own_(own) {}

  // Null: the owner's namespace is on its way out, and so is everything in it. Errors: the API's, also in `failure`.
  Result<ObjectPtr> create(const Object& owner, const json::value& pod, Failure& failure);
  // Gone already is as good. Errors: the API's, also in `failure`.
  Result<void> remove(const Object& owner, const Object& pod, Failure& failure);

 private:
  Client& client_;
  EventRecorder recorder_;
  OwnWrites& own_;
};

// Names the owner that a pod (or what else has owners) belongs to; for an orphan, every one of `owners` that would adopt it.
// `selectors`: what those select.
void name_owner(const Object& pod, const Kind& kind, const Informer& owners, const LookAt& look_at, SelectorCache& selectors);
json::value label_selector_of(const Object& owner);  // spec.selector, null when absent

// Readiness of today is availability of later, and nobody else will tell when: how long until the next of the pods becomes
// available. Nothing when none will by itself.
std::optional<std::chrono::nanoseconds> next_available(const std::vector<ObjectPtr>& pods, std::chrono::seconds min_ready,
                                                       WallTime now);

}  // namespace coracle::controller

// SPDX-License-Identifier: Apache-2.0
// Priority: sets a pod's priority and preemption policy from its PriorityClass, or from the global default class. Source:
// Kubernetes plugin/pkg/admission/priority.
#include "store/schema/priority.h"

#include "daemon/admission/plugin.h"
#include "store/object/object.h"
#include "store/schema/views.h"

namespace coracle::admission {
namespace {

struct Class {
  std::string name;
  int64_t value = 0;
  std::string preemption = "PreemptLowerPriority";
};

Class priority_class_of(const Object& object) {
  view::PriorityClass priority_class(object);
  Class out{object.name(), priority_class.value()};
  if (auto policy = priority_class.preemption_policy(); !policy.empty()) out.preemption = policy;
  return out;
}

// Of several (possible after a race), the one with the lowest value. Null if there is none.
ObjectPtr default_priority_class(const ClusterState& cluster) {
  ObjectPtr found;
  for (ObjectPtr& one : cluster.list(kPriorityClass)) {
    view::PriorityClass priority_class(*one);
    if (priority_class.global_default() && (!found || priority_class.value() < view::PriorityClass(*found).value()))
      found = std::move(one);
  }
  return found;
}

Result<Class> class_for(const Request& request, const ClusterState& cluster) {
  std::string name(view::Pod(*request.object).spec().priority_class_name());
  if (name.empty()) {
    ObjectPtr found = default_priority_class(cluster);
    return found ? priority_class_of(*found) : Class();
  }
  if (ObjectPtr found = cluster.get(kPriorityClass, {"", name})) return priority_class_of(*found);
  // System classes are built in, because pods may use them before they are stored.
  for (const schema::SystemClass& one : schema::kSystemClasses)
    if (name == one.name) return Class{name, one.value};
  return refuse(request, "no PriorityClass with name " + name + " was found");
}

Result<void> admit_new_pod(Request& request, const ClusterState& cluster) {
  Class found = TRY(class_for(request, cluster));
  json::value& pod = *request.object;
  if (!found.name.empty()) make(pod, "spec.priorityClassName") = found.name;
  view::PodSpec spec = view::Pod(pod).spec();
  if (int64_t number = spec.priority_or(found.value); number != found.value)
    return refuse(request, "the integer value of priority (" + std::to_string(number) +
                               ") must not be provided in pod spec; priority admission controller computed " +
                               std::to_string(found.value) + " from the given PriorityClass name");
  make(pod, "spec.priority") = found.value;
  std::string policy(view::Pod(pod).spec().preemption_policy());
  if (!policy.empty() && policy != found.preemption)
    return refuse(request, "the string value of PreemptionPolicy (" + policy +
                               ") must not be provided in pod spec; priority admission controller computed " + found.preemption +
                               " from the given PriorityClass name");
  make(pod, "spec.preemptionPolicy") = found.preemption;
  return {};
}

class Priority : public Plugin {
 public:
  std::string_view name() const override { return "Priority"; }

  Result<void> admit(Request& request, const ClusterState& cluster) const override {
    if (!(request.kind == kPod) || !request.subresource.empty()) return {};
    if (request.operation == Operation::create) return admit_new_pod(request, cluster);
    if (request.operation != Operation::update) return {};
    // Omitting them does not change them.
    view::PodSpec before = view::Pod(*request.old).spec(), now = view::Pod(*request.object).spec();
    bool omits_policy = before.has_preemption_policy() && !now.has_preemption_policy();
    if (before.has_priority() && !now.has_priority()) make(*request.object, "spec.priority") = before.priority();
    if (omits_policy) make(*request.object, "spec.preemptionPolicy") = before.preemption_policy();
    return {};
  }

  Result<void> validate(const Request& request, const ClusterState& cluster) const override {
    bool concerned = request.kind == kPriorityClass && request.subresource.empty() && request.operation != Operation::remove;
    if (!concerned || !view::PriorityClass(*request.object).global_default()) return {};
    ObjectPtr other = default_priority_class(cluster);
    if (!other || (request.operation == Operation::update && other->name() == request.key.name)) return {};
    return refuse(request, "PriorityClass " + other->name() + " is already marked as default. Only one default can exist");
  }
};

}  // namespace

std::unique_ptr<Plugin> make_priority() { return std::make_unique<Priority>(); }

}  // namespace coracle::admission

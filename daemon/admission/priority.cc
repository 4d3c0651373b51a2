// SPDX-License-Identifier: Apache-2.0
// Priority: sets a pod's priority and preemption policy from its PriorityClass, or from the global default class. Source:
// Kubernetes plugin/pkg/admission/priority.
#include "store/schema/priority.h"

#include "daemon/admission/plugin.h"
#include "store/object/object.h"

namespace coracle::admission {
namespace {

struct Class {
  std::string name;
  int64_t value = 0;
  std::string preemption = "PreemptLowerPriority";
};

Class priority_class_of(const Object& object) {
  Class out{object.name(), get_int(object.json(), "value")};
  if (auto policy = get_string(object.json(), "preemptionPolicy"); !policy.empty()) out.preemption = policy;
  return out;
}

// Of several (possible after a race), the one with the lowest value. Null if there is none.
ObjectPtr default_priority_class(const ClusterState& cluster) {
  ObjectPtr found;
  for (ObjectPtr& one : cluster.list(kPriorityClass))
    if (get_bool(one->json(), "globalDefault") && (!found || get_int(one->json(), "value") < get_int(found->json(), "value")))
      found = std::move(one);
  return found;
}

Result<Class> class_for(const Request& request, const ClusterState& cluster) {
  std::string name(get_string(*request.object, "spec.priorityClassName"));
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
  const json::value* number = find(pod, "spec.priority");
  if (number && !number->is_null() && get_int(pod, "spec.priority") != found.value)
    return refuse(request, "the integer value of priority (" + to_text(*number) +
                               ") must not be provided in pod spec; priority admission controller computed " +
                               std::to_string(found.value) + " from the given PriorityClass name");
  make(pod, "spec.priority") = found.value;
  std::string policy(get_string(pod, "spec.preemptionPolicy"));
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
    for (const char* path : {"spec.priority", "spec.preemptionPolicy"})  // omitting them does not change them
      if (const json::value* before = find(request.old->json(), path); before && !find(*request.object, path))
        make(*request.object, path) = *before;
    return {};
  }

  Result<void> validate(const Request& request, const ClusterState& cluster) const override {
    bool concerned = request.kind == kPriorityClass && request.subresource.empty() && request.operation != Operation::remove;
    if (!concerned || !get_bool(*request.object, "globalDefault")) return {};
    ObjectPtr other = default_priority_class(cluster);
    if (!other || (request.operation == Operation::update && other->name() == request.key.name)) return {};
    return refuse(request, "PriorityClass " + other->name() + " is already marked as default. Only one default can exist");
  }
};

}  // namespace

std::unique_ptr<Plugin> make_priority() { return std::make_unique<Priority>(); }

}  // namespace coracle::admission

// SPDX-License-Identifier: Apache-2.0
// Pods that wait for others. See order.h.
#include "daemon/order/order.h"

#include <algorithm>
#include <optional>
#include <set>

#include "runtime/base/text.h"
#include "store/object/object.h"
#include "store/object/selector.h"
#include "store/object/share.h"
#include "store/schema/views.h"

namespace coracle::order {
namespace {

struct Name {
  std::string_view word;
  const Kind* kind;
};
constexpr Name kShortNames[] = {{"po", &kPod},          {"svc", &kService},  {"deploy", &kDeployment},       {"rs", &kReplicaSet},
                                {"sts", &kStatefulSet}, {"ds", &kDaemonSet}, {"rc", &kReplicationController}};

const Kind* kind_of(std::string_view written) {
  std::string word = to_lower(written.substr(0, written.find('.')));  // "deployments.apps" as well
  for (const Kind* kind : kKinds)
    if (word == kind->resource || word == to_lower(kind->kind)) return kind;
  for (const Name& name : kShortNames)
    if (word == name.word) return name.kind;
  return nullptr;
}

Error unreadable(std::string_view part, const std::string& why) { return Error(Code::invalid, quoted(part) + ": " + why); }

std::string known_kinds() {
  std::string out;
  for (const Kind* kind : kKinds) out.append(out.empty() ? "" : ", ").append(to_lower(kind->kind));
  return out;
}

Result<Dependency> parse_one(std::string_view part) {
  size_t slash = part.find('/');
  if (slash == part.npos) return unreadable(part, "must be KIND/NAME, such as deployment/db");
  const Kind* kind = kind_of(part.substr(0, slash));
  if (!kind) return unreadable(part, "cannot wait for this kind; those that can be waited for are " + known_kinds());
  std::string_view name = part.substr(slash + 1);
  bool is_name =
      !name.empty() && name.size() <= 253 && name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-.") == name.npos;
  if (!is_name) return unreadable(part, "has no name that an object can have");
  return Dependency{kind, std::string(name)};
}

// ---- what is there ----

bool finished(const Object& pod) {
  std::string_view phase = view::Pod(pod).status().phase();
  return phase == "Succeeded" || phase == "Failed";
}

bool has_condition(const Object& object, std::string_view type) {
  for (const json::value& condition : get_array(object.json(), "status.conditions"))
    if (get_string(condition, "type") == type) return get_string(condition, "status") == "True";
  return false;
}

LabelSelector pods_of(const Object& owner) {
  const json::value* written = find(owner.json(), "spec.selector");
  if (!written) return LabelSelector::nothing();
  bool plain = owner.kind() == kService || owner.kind() == kReplicationController;
  if (plain) return LabelSelector::from_map(get_object(owner.json(), "spec.selector"));
  auto selector = LabelSelector::from_json(written);
  return selector ? *std::move(selector) : LabelSelector::nothing();
}

int64_t count_ready(const Object& owner, const World& world) {
  LabelSelector selector = pods_of(owner);
  int64_t ready = 0;
  for (const ObjectPtr& pod : world.pods(owner.ns()))
    ready += !pod->deleting() && !finished(*pod) && selector.matches(*pod) && world.ready(*pod);
  return ready;
}

// How many ready pods make it available.
int64_t wanted_pods(const Object& owner) {
  const json::value& json = owner.json();
  if (owner.kind() == kDaemonSet) return get_int(json, "status.desiredNumberScheduled");
  int64_t replicas = get_int(json, "spec.replicas", 1);
  if (!(owner.kind() == kDeployment)) return replicas;
  int64_t spare = scaled(find(json, "spec.strategy.rollingUpdate.maxUnavailable"), replicas, false, replicas / 4);
  return replicas == 0 ? 0 : std::max<int64_t>(1, replicas - spare);
}

// The object's own word for it, which knows of minReadySeconds.
bool says_available(const Object& owner) {
  const json::value& json = owner.json();
  if (get_int(json, "status.observedGeneration") < get_int(json, "metadata.generation")) return false;
  if (owner.kind() == kDeployment) return has_condition(owner, "Available");
  if (owner.kind() == kDaemonSet) return get_int(json, "status.numberAvailable") >= wanted_pods(owner);
  return get_int(json, "status.availableReplicas") >= wanted_pods(owner);
}

std::string lacks_pods(const Object& owner, const World& world) {
  int64_t ready = count_ready(owner, world), wanted = wanted_pods(owner);
  if (ready < wanted) return std::to_string(ready) + " of " + std::to_string(wanted) + " pods ready";
  return says_available(owner) ? "" : "not available yet";
}

std::string lacks_service(const Object& service, const World& world) {
  if (get_string(service.json(), "spec.type") == "ExternalName") return {};
  bool selects = !get_object(service.json(), "spec.selector").empty();
  bool served = selects ? count_ready(service, world) > 0 : world.has_ready_endpoints(service.key());
  return served ? "" : "no ready endpoints";
}

// "" when it is available.
std::string lack(const Dependency& dependency, const std::string& ns, const World& world) {
  ObjectPtr object = world.get(*dependency.kind, {ns, dependency.name});
  if (!object) return "not found";
  if (*dependency.kind == kPod)
    return view::Pod(*object).status().phase() == "Succeeded" || world.ready(*object) ? "" : "not ready";
  if (*dependency.kind == kJob)
    return has_condition(*object, "Complete") ? "" : has_condition(*object, "Failed") ? "failed" : "not complete";
  if (*dependency.kind == kService) return lacks_service(*object, world);
  return lacks_pods(*object, world);
}

std::vector<Dependency> after(std::string_view annotation) {
  if (annotation.empty()) return {};
  auto dependencies = parse_after(annotation);
  return dependencies ? *std::move(dependencies) : std::vector<Dependency>();
}

// ---- cycles ----

// Owners and dependencies are what clients wrote: they may name each other in a circle, or in a row without an end.
constexpr size_t kOwnersMax = 4;      // above a pod: a Deployment's is two
constexpr size_t kWayMax = 100;       // from the pod to itself; a longer way is not found
constexpr size_t kVisitedMax = 1000;  // objects, in one search

class CycleFinder {
 public:
  CycleFinder(const Object& pod, const World& world) : ns_(pod.ns()), world_(world) {
    for (const Dependency& maker : makers_of(pod)) self_.push_back(maker.text());
  }

  std::string find(const Object& pod) {
    path_ = {self_.back()};
    return go(after(pod.annotation(kAfter))) ? join() : std::string();
  }

 private:
  // A pod, and whoever makes it: from the pod up.
  std::vector<Dependency> makers_of(const Object& pod) const {
    std::vector<Dependency> out{{&kPod, pod.name()}};
    auto owner = pod.controller();
    while (owner && out.size() <= kOwnersMax) {
      const Kind* kind = kind_of(owner->kind);
      ObjectPtr above = kind ? world_.get(*kind, {ns_, owner->name}) : nullptr;
      if (!above) break;
      out.push_back({kind, above->name()});
      owner = above->controller();
    }
    return out;
  }

  bool is_self(const std::string& name) const { return std::find(self_.begin(), self_.end(), name) != self_.end(); }

  // Whether one of them leads back; then path_ ends there.
  bool go(const std::vector<Dependency>& dependencies) {
    for (const Dependency& dependency : dependencies) {
      std::string name = dependency.text();
      path_.push_back(name);
      if (is_self(name)) return true;
      bool goes_on = path_.size() < kWayMax && seen_.size() < kVisitedMax && seen_.insert(name).second;
      if (goes_on && go(next(dependency))) return true;
      path_.pop_back();
    }
    return false;
  }

  std::vector<Dependency> next(const Dependency& dependency) {
    ObjectPtr object = world_.get(*dependency.kind, {ns_, dependency.name});
    if (!object) return {};
    if (*dependency.kind == kPod) return after(object->annotation(kAfter));
    if (*dependency.kind == kService) return behind(*object);
    const json::value* written = find_keys(object->json(), {"spec", "template", "metadata", "annotations", kAfter});
    return written && written->is_string() ? after(written->get_string()) : std::vector<Dependency>();
  }

  // A service is as available as whoever makes its pods.
  std::vector<Dependency> behind(const Object& service) {
    if (!pods_) pods_ = world_.pods(ns_);
    LabelSelector selector = pods_of(service);
    std::optional<Dependency> only;
    for (const ObjectPtr& pod : *pods_) {
      if (pod->deleting() || finished(*pod) || !selector.matches(*pod)) continue;
      Dependency maker = makers_of(*pod).back();
      if (only && only->text() != maker.text()) return {};  // of several, one may do
      only = std::move(maker);
    }
    return only ? std::vector<Dependency>{*std::move(only)} : std::vector<Dependency>();
  }

  std::string join() const {
    std::string out;
    for (const std::string& name : path_) out.append(out.empty() ? "" : " → ").append(name);
    return out;
  }

  const std::string& ns_;
  const World& world_;
  std::vector<std::string> self_, path_;
  std::set<std::string> seen_;
  std::optional<std::vector<ObjectPtr>> pods_;  // of the namespace, once they are needed
};

}  // namespace

std::string Dependency::text() const { return to_lower(kind->kind) + "/" + name; }

Result<std::vector<Dependency>> parse_after(std::string_view text) {
  std::vector<Dependency> out;
  for (std::string_view part : split(text, ',')) {
    part = trim(part);
    if (part.empty()) return unreadable(text, "has an empty part; write KIND/NAME, KIND/NAME");
    if (out.size() == kDependenciesMax)
      return Error(Code::invalid, "more than " + std::to_string(kDependenciesMax) + " to wait for");
    Dependency dependency = TRY(parse_one(part));
    out.push_back(std::move(dependency));
  }
  return out;
}

std::vector<std::string> missing(const Object& pod, const World& world) {
  std::vector<std::string> out;
  for (const Dependency& dependency : after(pod.annotation(kAfter)))
    if (std::string why = lack(dependency, pod.ns(), world); !why.empty()) out.push_back(dependency.text() + ": " + why);
  return out;
}

std::string waits_for(const Object& pod, const World& world) {
  std::vector<std::string> lacks = missing(pod, world);
  if (lacks.empty()) return {};
  std::string round = cycle(pod, world), all;
  for (const std::string& text : lacks) all.append(all.empty() ? "" : ", ").append(text);
  return std::string(kAfter) + (round.empty() ? ": waiting for " + all : ": waits for itself: " + round);
}

std::string cycle(const Object& pod, const World& world) { return CycleFinder(pod, world).find(pod); }

}  // namespace coracle::order

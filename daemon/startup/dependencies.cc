// SPDX-License-Identifier: Apache-2.0
// See dependencies.h.
#include "daemon/startup/dependencies.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "runtime/base/text.h"
#include "store/kinds/meta/conditions.h"
#include "store/kinds/pod/pod_state.h"
#include "store/object/object.h"
#include "store/object/selector.h"
#include "store/object/share.h"
#include "store/schema/views.h"

namespace coracle::startup {
namespace {

struct Name {
  std::string_view word;
  const Kind* kind;
};
constexpr Name kShortNames[] = {{"po", &kPod},          {"svc", &kService},  {"deploy", &kDeployment},       {"rs", &kReplicaSet},
                                {"sts", &kStatefulSet}, {"ds", &kDaemonSet}, {"rc", &kReplicationController}};

const Kind* kind_of(std::string_view written) {
  std::string word = to_lower(written.substr(0, written.find('.')));  // accepts "deployments.apps" too
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

// ---- availability ----

LabelSelector pods_of(const Object& owner) {
  const json::value* written = view::ReplicaSet(owner).spec().selector().pointer();  // it has this place in all of the kinds
  if (!written) return LabelSelector::nothing();
  bool plain = owner.kind() == kService || owner.kind() == kReplicationController;
  if (plain) return LabelSelector::from_map(view::Service(owner).spec().selector());
  auto selector = LabelSelector::from_json(written);
  return selector ? *std::move(selector) : LabelSelector::nothing();
}

// The number of ready pods that make it available.
int64_t wanted_pods(const Object& owner) {
  if (owner.kind() == kDaemonSet) return view::DaemonSet(owner).status().desired_number_scheduled();
  view::DeploymentSpec spec = view::Deployment(owner).spec();  // `replicas` has this place in the other kinds too
  int64_t replicas = spec.replicas_or(1);
  if (!(owner.kind() == kDeployment)) return replicas;
  int64_t spare = scaled(spec.strategy().rolling_update().max_unavailable(), replicas, false, replicas / 4);
  return replicas == 0 ? 0 : std::max<int64_t>(1, replicas - spare);
}

// Whether its own status reports it as available, which respects minReadySeconds.
bool says_available(const Object& owner) {
  view::Deployment viewed(owner);  // what is read of it has the same names in the other kinds
  if (viewed.status().observed_generation() < viewed.metadata().generation()) return false;
  if (owner.kind() == kDeployment) return has_true_condition(owner.json(), "Available");
  if (owner.kind() == kDaemonSet) return view::DaemonSet(owner).status().number_available() >= wanted_pods(owner);
  return viewed.status().available_replicas() >= wanted_pods(owner);
}

std::vector<Dependency> after(std::string_view annotation) {
  if (annotation.empty()) return {};
  auto dependencies = parse_after(annotation);
  return dependencies ? *std::move(dependencies) : std::vector<Dependency>();
}

// The controller of an object, if its kind may be a dependency.
std::optional<Dependency> owner_of(const Object& object) {
  auto owner = object.controller();
  const Kind* kind = owner ? kind_of(owner->kind) : nullptr;
  return kind ? std::optional(Dependency{kind, std::string(owner->name)}) : std::nullopt;
}

// Limits, because clients write owners and dependencies, which may form cycles or endless chains.
constexpr size_t kOwnersMax = 4;      // above a pod: a Deployment's pod has two
constexpr size_t kWayMax = 100;       // length of a cycle; longer ones are not found
constexpr size_t kVisitedMax = 1000;  // objects per search
constexpr size_t kLivingMax = 1000;   // live pods of a namespace; with more, cycles through Services are not searched

}  // namespace

// ---- cached facts ----

class DependencyCache::Observed {
 public:
  Observed(const Lister& lister, std::string ns) : lister_(lister), ns_(std::move(ns)) {}

  // "" if it is available.
  const std::string& unmet(const Dependency& dependency) {
    auto [found, fresh] = unmet_.try_emplace(dependency.text());
    if (fresh) found->second = find_unmet(dependency);
    return found->second;
  }

  // Its own dependencies.
  const std::vector<Dependency>& next(const Dependency& dependency) {
    auto [found, fresh] = next_.try_emplace(dependency.text());
    if (fresh) found->second = find_next(dependency);
    return found->second;
  }

  // The pod and its controllers, from the pod upwards.
  std::vector<Dependency> makers_of(const Object& pod) {
    std::vector<Dependency> out{{&kPod, pod.name()}};
    std::optional<Dependency> owner = owner_of(pod);
    while (owner && out.size() <= kOwnersMax) {
      const Owner& its = above(*owner);
      if (!its.is_there) break;
      out.push_back(*std::move(owner));
      owner = its.owner;
    }
    return out;
  }

 private:
  struct Owner {
    bool is_there = false;
    std::optional<Dependency> owner;
  };
  const Owner& above(const Dependency& dependency) {
    auto [found, fresh] = owners_.try_emplace(dependency.text());
    if (ObjectPtr object = fresh ? get(dependency) : nullptr) found->second = {true, owner_of(*object)};
    return found->second;
  }

  ObjectPtr get(const Dependency& dependency) const { return lister_.get(*dependency.kind, {ns_, dependency.name}); }

  // Pods that have not ended. Only the needed fields stay in memory while the cache exists.
  struct LivingPod {
    RestingPtr object;
    json::object labels;
    bool is_ready;
  };
  const std::vector<LivingPod>& living() {
    if (living_) return *living_;
    living_.emplace();
    for (const ObjectPtr& pod : lister_.pods(ns_))
      if (!pod->deleting() && !is_terminal(view::Pod(*pod)))
        living_->push_back({pod->at_rest(), json::object(pod->labels(), json::storage_ptr()), lister_.ready(*pod)});
    return *living_;
  }
  int64_t count_ready(const Object& owner) {
    LabelSelector selector = pods_of(owner);
    return std::ranges::count_if(living(), [&](const LivingPod& pod) { return pod.is_ready && selector.matches(pod.labels); });
  }

  std::string find_unmet(const Dependency& dependency) {
    ObjectPtr object = get(dependency);
    if (!object) return "not found";
    if (*dependency.kind == kPod)
      return view::Pod(*object).status().phase() == "Succeeded" || lister_.ready(*object) ? "" : "not ready";
    if (*dependency.kind == kJob)
      return has_true_condition(object->json(), "Complete") ? ""
             : has_true_condition(object->json(), "Failed") ? "failed"
                                                            : "not complete";
    return *dependency.kind == kService ? unmet_of_service(*object) : unmet_of_owner(*object);
  }
  std::string unmet_of_service(const Object& service) {
    view::ServiceSpec spec = view::Service(service).spec();
    if (spec.type() == "ExternalName") return {};
    bool selects = !spec.selector().empty();
    bool served = selects ? count_ready(service) > 0 : lister_.has_ready_endpoints(service.key());
    return served ? "" : "no ready endpoints";
  }
  std::string unmet_of_owner(const Object& owner) {
    int64_t ready = count_ready(owner), wanted = wanted_pods(owner);
    if (ready < wanted) return std::to_string(ready) + " of " + std::to_string(wanted) + " pods ready";
    return says_available(owner) ? "" : "not available yet";
  }

  std::vector<Dependency> find_next(const Dependency& dependency) {
    ObjectPtr object = get(dependency);
    if (!object) return {};
    if (*dependency.kind == kPod) return after(object->annotation(kAfter));
    if (*dependency.kind == kService) return behind(*object);
    view::PodTemplateSpec of_pods = view::Deployment(*object).spec().template_();  // or of another kind with a template
    const json::value* written = of_pods.metadata().annotations().if_contains(kAfter);
    return written && written->is_string() ? after(written->get_string()) : std::vector<Dependency>();
  }
  // A service is as available as the controller of its pods.
  std::vector<Dependency> behind(const Object& service) {
    LabelSelector selector = pods_of(service);
    std::optional<Dependency> only;
    if (living().size() > kLivingMax) return {};
    for (const LivingPod& pod : living()) {
      if (!selector.matches(pod.labels)) continue;
      Dependency maker = makers_of(*pod.object->awake()).back();
      if (only && only->text() != maker.text()) return {};  // with several controllers, one of them may suffice
      only = std::move(maker);
    }
    return only ? std::vector<Dependency>{*std::move(only)} : std::vector<Dependency>();
  }

  const Lister& lister_;
  const std::string ns_;
  std::map<std::string, std::string> unmet_;  // by Dependency::text(), like the others
  std::map<std::string, std::vector<Dependency>> next_;
  std::map<std::string, Owner> owners_;
  std::optional<std::vector<LivingPod>> living_;
};

// ---- cycles ----

namespace {

template <typename Observed>
class CycleFinder {
 public:
  CycleFinder(const Object& pod, Observed& observed) : observed_(observed) {
    for (const Dependency& maker : observed.makers_of(pod)) self_.push_back(maker.text());
  }

  std::string find(const Object& pod) {
    path_ = {self_.back()};
    return go(after(pod.annotation(kAfter))) ? join() : std::string();
  }

 private:
  bool is_self(const std::string& name) const { return std::find(self_.begin(), self_.end(), name) != self_.end(); }

  // Whether one of them leads back to the pod; then path_ is the cycle.
  bool go(const std::vector<Dependency>& dependencies) {
    for (const Dependency& dependency : dependencies) {
      std::string name = dependency.text();
      path_.push_back(name);
      if (is_self(name)) return true;
      bool goes_on = path_.size() < kWayMax && seen_.size() < kVisitedMax && seen_.insert(name).second;
      if (goes_on && go(observed_.next(dependency))) return true;
      path_.pop_back();
    }
    return false;
  }

  std::string join() const {
    std::string out;
    for (const std::string& name : path_) out.append(out.empty() ? "" : " → ").append(name);
    return out;
  }

  Observed& observed_;
  std::vector<std::string> self_, path_;
  std::set<std::string> seen_;
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

DependencyCache::DependencyCache(const Lister& lister, const std::string& ns)
    : observed_(std::make_unique<Observed>(lister, ns)) {}
DependencyCache::~DependencyCache() = default;

std::vector<std::string> DependencyCache::missing(const Object& pod) {
  std::vector<std::string> out;
  for (const Dependency& dependency : after(pod.annotation(kAfter)))
    if (const std::string& why = observed_->unmet(dependency); !why.empty()) out.push_back(dependency.text() + ": " + why);
  return out;
}

std::string DependencyCache::waits_for(const Object& pod) {
  std::vector<std::string> unmet = missing(pod);
  if (unmet.empty()) return {};
  std::string round = cycle(pod), all;
  for (const std::string& text : unmet) all.append(all.empty() ? "" : ", ").append(text);
  return std::string(kAfter) + (round.empty() ? ": waiting for " + all : ": waits for itself: " + round);
}

std::string DependencyCache::cycle(const Object& pod) { return CycleFinder<Observed>(pod, *observed_).find(pod); }

std::vector<std::string> missing(const Object& pod, const Lister& lister) {
  return DependencyCache(lister, pod.ns()).missing(pod);
}
std::string waits_for(const Object& pod, const Lister& lister) { return DependencyCache(lister, pod.ns()).waits_for(pod); }
std::string cycle(const Object& pod, const Lister& lister) { return DependencyCache(lister, pod.ns()).cycle(pod); }

}  // namespace coracle::startup

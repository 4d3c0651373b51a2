// SPDX-License-Identifier: Apache-2.0
// The plan of a Deployment. See deployment.h. All functions are pure.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "daemon/controller/workload/deployment.h"
#include "runtime/base/text.h"

namespace coracle::controller {
namespace {

// ---- reading sets ----

using SetStatus = view::ReplicaSetStatus;
using CountInStatus = int64_t (SetStatus::*)() const;

int64_t spec_replicas(const Object& set) { return view::ReplicaSet(set).spec().replicas_or(1); }
int64_t status_count(const Object& set, CountInStatus count) { return (view::ReplicaSet(set).status().*count)(); }
std::string_view created(const Object& object) { return view::ReplicaSet(object).metadata().creation_timestamp(); }
// Whether the status is for the present spec.
bool has_observed(const Object& set) {
  return view::ReplicaSet(set).metadata().generation() <= view::ReplicaSet(set).status().observed_generation();
}
// The status of a set that was just scaled down still counts pods that are about to be deleted.
int64_t available_replicas(const Object& set) {
  return std::min(status_count(set, &SetStatus::available_replicas), spec_replicas(set));
}
int64_t revision_of(const Object& set) { return parse_number<int64_t>(set.annotation(kRevisionAnnotation)).value_or(0); }
std::optional<int64_t> number_annotation(const Object& set, std::string_view name) {
  return parse_number<int64_t>(set.annotation(name));
}
bool older(const ObjectPtr& a, const ObjectPtr& b) {
  return std::pair(created(*a), std::string_view(a->name())) < std::pair(created(*b), std::string_view(b->name()));
}
template <typename Count>
int64_t sum(const std::vector<ObjectPtr>& sets, Count count) {
  return std::accumulate(sets.begin(), sets.end(), int64_t(0),
                         [&](int64_t all, const ObjectPtr& set) { return all + count(*set); });
}
int64_t sum_status(const std::vector<ObjectPtr>& sets, CountInStatus in_status) {
  return sum(sets, [&](const Object& set) { return status_count(set, in_status); });
}

// Whether an annotation concerns the Deployment itself and is not copied to its new set.
bool is_about_deployment(std::string_view annotation) {
  for (std::string_view own :
       {std::string_view("kubectl.kubernetes.io/last-applied-configuration"), kRevisionAnnotation, kRevisionHistoryAnnotation,
        kDesiredAnnotation, kMaxAnnotation, std::string_view("deprecated.deployment.rollback.to")})
    if (annotation == own) return true;
  return false;
}

// ---- the plan ----

class DeploymentPlanner {
 public:
  DeploymentPlanner(const ObservedDeployment& observed, WallTime now)
      : object_(*observed.deployment), deployment_(object_), observed_(observed), now_(now), all_(observed.sets) {
    replicas_ = deployment_.spec().replicas_or(1);
    rolling_ = deployment_.spec().strategy().type() != "Recreate";
    std::sort(all_.begin(), all_.end(), older);
    for (const ObjectPtr& set : all_) {
      bool is_new = !new_ && same_template(view::ReplicaSet(*set).spec().template_().raw(), wanted_template());
      if (is_new) new_ = set;  // the oldest one, if several match
      else old_.push_back(set);
    }
    resolve_fences();
  }

  DeploymentPlan plan() {
    conditions_ = deployment_.status().conditions().raw();
    if (object_.deleting()) {
      plan_.status = status(false);
    } else if (pausing()) {
      scale();
      if (deployment_.spec().paused()) clean_up();
      plan_.status = status(false);
    } else {
      bool done = rolling_ ? roll() : recreate();
      if (done) {
        const json::object counts = status_counts();
        if (complete(view::DeploymentStatus(counts))) clean_up();
      }
      plan_.status = status(true);
    }
    return std::move(plan_);
  }

 private:
  const json::value& wanted_template() const { return deployment_.spec().template_().raw(); }

  void resolve_fences() {
    if (!rolling_) return;
    view::RollingUpdateDeployment rolling = deployment_.spec().strategy().rolling_update();
    max_surge_ = scaled(rolling.max_surge(), replicas_, true, scaled_default(true));
    max_unavailable_ = scaled(rolling.max_unavailable(), replicas_, false, scaled_default(false));
    if (max_surge_ == 0 && max_unavailable_ == 0) max_unavailable_ = 1;  // otherwise a rollout could never proceed
    max_unavailable_ = std::min(max_unavailable_, replicas_);
  }
  int64_t scaled_default(bool up) const { return (25 * replicas_ + (up ? 99 : 0)) / 100; }
  int64_t max_pods() const { return replicas_ + max_surge_; }

  bool pausing() const {
    if (deployment_.spec().paused()) return true;
    bool several = std::count_if(all_.begin(), all_.end(), [](const ObjectPtr& set) { return spec_replicas(*set) > 0; }) > 1;
    if (!rolling_ && several) return false;  // nothing to scale proportionally: the old sets are scaled down
    return std::any_of(all_.begin(), all_.end(), [&](const ObjectPtr& set) {  // the Deployment was scaled
      auto desired = number_annotation(*set, kDesiredAnnotation);
      return spec_replicas(*set) > 0 && desired && *desired != replicas_;
    });
  }

  // ---- steps ----

  json::object annotations_for(const ObjectPtr& set, bool with_own, const std::string& revision) const {
    json::object out;
    if (set) out = view::ReplicaSet(*set).metadata().annotations();
    if (with_own)
      for (const auto& [key, value] : deployment_.metadata().annotations())
        if (!is_about_deployment(key)) out[key] = value;
    if (!revision.empty()) {
      std::string_view before = set ? set->annotation(kRevisionAnnotation) : "";
      if (!before.empty() && before != revision) {  // rollback to an old template: keeps its earlier revision numbers
        std::string history(set->annotation(kRevisionHistoryAnnotation));
        out[kRevisionHistoryAnnotation] = history + (history.empty() ? "" : ",") + std::string(before);
      }
      out[kRevisionAnnotation] = revision;
    }
    out[kDesiredAnnotation] = std::to_string(replicas_);
    out[kMaxAnnotation] = std::to_string(max_pods());
    return out;
  }

  // Returns whether the set's size changes.
  bool resize(const ObjectPtr& set, int64_t size) {
    return update(set, size, annotations_for(set, false, ""), view::ReplicaSet(*set).spec().min_ready_seconds());
  }

  // Copies the set only if something changes, because it may have megabytes and most plans change nothing.
  bool update(const ObjectPtr& set, int64_t size, json::object annotations, int64_t min_ready) {
    const int64_t from = spec_replicas(*set);
    view::ReplicaSetSpec spec = view::ReplicaSet(*set).spec();
    const bool same = spec.has_replicas() && from == size && spec.min_ready_seconds() == min_ready &&
                      same_json(view::ReplicaSet(*set).metadata().annotations(), annotations);
    if (same) return false;
    json::value body = changeable_copy(*set);
    make(body, "spec.replicas") = size;
    make(body, "metadata.annotations") = std::move(annotations);
    if (min_ready) make(body, "spec.minReadySeconds") = min_ready;
    else make_object(body, "spec").erase("minReadySeconds");
    plan_.steps.push_back({DeploymentStep::What::update, set, std::move(body), from, size});
    return from != size;
  }

  std::string new_revision() const {
    int64_t latest = 0;
    for (const ObjectPtr& set : old_) latest = std::max(latest, revision_of(*set));
    if (new_ && revision_of(*new_) > latest) return std::to_string(revision_of(*new_));
    return std::to_string(latest + 1);
  }

  // The largest size of the new set at the moment.
  int64_t new_size() const {
    int64_t current = new_ ? spec_replicas(*new_) : 0;
    if (!rolling_) return replicas_;
    int64_t pods = sum(all_, spec_replicas);
    if (pods >= max_pods()) return current;
    return current + std::min(max_pods() - pods, replicas_ - current);
  }

  void create_new() {
    int64_t collisions = deployment_.status().collision_count();
    std::string hash = template_hash(wanted_template(), collisions);
    created_name_ = object_.name() + "-" + hash;
    plan_.revision = new_revision();
    json::object metadata{{"name", created_name_},
                          {"namespace", object_.ns()},
                          {"annotations", annotations_for(nullptr, true, plan_.revision)},
                          {"ownerReferences", json::array{controller_reference(object_)}}};
    // The parts of the spec are copied once, into their places: they may have megabytes.
    json::value body({{"apiVersion", "apps/v1"}, {"kind", "ReplicaSet"}, {"metadata", std::move(metadata)}},
                     body_memory(object_.text()));
    json::object& spec = make_object(body, "spec");
    spec["replicas"] = new_size();
    if (int64_t min_ready = deployment_.spec().min_ready_seconds()) spec["minReadySeconds"] = min_ready;
    spec["selector"] = deployment_.spec().selector().raw();
    spec["template"] = wanted_template();
    make_object(body, "spec.selector.matchLabels")[kHashLabel] = hash;
    json::object& labels = make_object(body, "spec.template.metadata.labels");
    labels[kHashLabel] = hash;
    make_object(body, "metadata.labels") = labels;
    plan_.steps.push_back({DeploymentStep::What::create, nullptr, std::move(body), 0, new_size()});
  }

  // Copies the Deployment's annotations, revision and minReadySeconds to the new set and may change its size. Returns whether the
  // size changes.
  bool update_new(int64_t size) {
    plan_.revision = new_revision();
    return update(new_, size, annotations_for(new_, true, plan_.revision), deployment_.spec().min_ready_seconds());
  }

  // ---- rolling update: scales up within maxSurge, then down within maxUnavailable. True: nothing to do now. ----

  bool roll() {
    if (!new_) return create_new(), false;
    int64_t size = spec_replicas(*new_);
    bool moved = update_new(size > replicas_ ? replicas_ : size < replicas_ ? new_size() : size);
    return !moved && !roll_old_down();
  }

  bool roll_old_down() {
    int64_t old_pods = sum(old_, spec_replicas);
    if (old_pods == 0) return false;
    int64_t minimum = replicas_ - max_unavailable_;
    int64_t new_unavailable = spec_replicas(*new_) - available_replicas(*new_);
    int64_t surplus = sum(all_, spec_replicas) - minimum - new_unavailable;
    if (surplus <= 0) return false;
    std::vector<int64_t> sizes;
    for (const ObjectPtr& set : old_) sizes.push_back(spec_replicas(*set));
    // First pods that are not available anyway, without using maxUnavailable.
    for (size_t i = 0; i < old_.size() && surplus > 0; ++i) {
      int64_t broken = std::clamp<int64_t>(sizes[i] - available_replicas(*old_[i]), 0, surplus);
      sizes[i] -= broken;
      surplus -= broken;
    }
    int64_t healthy = sum(all_, available_replicas) - minimum;
    for (size_t i = 0; i < old_.size() && healthy > 0; ++i) {
      int64_t down = std::min(sizes[i], healthy);
      sizes[i] -= down;
      healthy -= down;
    }
    bool moved = false;
    for (size_t i = 0; i < old_.size(); ++i)
      if (sizes[i] != spec_replicas(*old_[i])) moved |= resize(old_[i], sizes[i]);
    return moved;
  }

  // ---- recreate: deletes all old pods, then creates new ones ----

  bool recreate() {
    bool moved = false;
    for (const ObjectPtr& set : old_)
      if (spec_replicas(*set) > 0) moved |= resize(set, 0);
    // A controller that has not observed that its set has size 0 may still create pods.
    bool heard = std::all_of(old_.begin(), old_.end(), [](const ObjectPtr& set) { return has_observed(*set); });
    if (moved || !heard || observed_.old_pods_run) return false;
    if (!new_) return create_new(), false;
    return !update_new(replicas_);
  }

  // ---- scaling: direct without a rollout, proportional during one ----

  void scale() {
    std::vector<ObjectPtr> active;
    for (const ObjectPtr& set : all_)
      if (spec_replicas(*set) > 0) active.push_back(set);
    if (active.size() <= 1) {
      ObjectPtr only = !active.empty() ? active[0] : new_ ? new_ : !old_.empty() ? latest() : nullptr;
      if (only) resize(only, replicas_);
    } else if (new_saturated()) {
      for (const ObjectPtr& set : active)
        if (set != new_) resize(set, 0);
      resize(new_, spec_replicas(*new_));
    } else if (rolling_) {
      scale_in_proportion(active);
    }
  }

  ObjectPtr latest() const {
    return *std::max_element(old_.begin(), old_.end(),
                             [](const ObjectPtr& a, const ObjectPtr& b) { return revision_of(*a) < revision_of(*b); });
  }

  bool new_saturated() const {
    return new_ && spec_replicas(*new_) == replicas_ && number_annotation(*new_, kDesiredAnnotation) == replicas_ &&
           status_count(*new_, &SetStatus::available_replicas) == replicas_;
  }

  void scale_in_proportion(std::vector<ObjectPtr> active) {
    int64_t allowed = replicas_ > 0 ? max_pods() : 0;
    int64_t to_add = allowed - sum(active, spec_replicas);
    bool up = to_add > 0;
    // The largest set first; of equal ones the newest when scaling up, the oldest when scaling down.
    std::stable_sort(active.begin(), active.end(), [&](const ObjectPtr& a, const ObjectPtr& b) {
      if (spec_replicas(*a) != spec_replicas(*b)) return spec_replicas(*a) > spec_replicas(*b);
      return up ? older(b, a) : older(a, b);
    });
    int64_t added = 0;
    std::vector<int64_t> sizes;
    for (const ObjectPtr& set : active) {
      int64_t part = proportion(*set, to_add, added);
      sizes.push_back(spec_replicas(*set) + part);
      added += part;
    }
    sizes[0] = std::max<int64_t>(sizes[0] + to_add - added, 0);  // the remainder of rounding
    for (size_t i = 0; i < active.size(); ++i) resize(active[i], sizes[i]);
  }

  int64_t proportion(const Object& set, int64_t to_add, int64_t added) const {
    if (spec_replicas(set) == 0 || to_add == added) return 0;
    int64_t wanted = -spec_replicas(set);
    if (replicas_ > 0) {
      int64_t former_max = number_annotation(set, kMaxAnnotation).value_or(deployment_.status().replicas());
      if (former_max <= 0) return 0;
      wanted = std::llround(double(spec_replicas(set) * max_pods()) / double(former_max)) - spec_replicas(set);
    }
    int64_t left = to_add - added;
    return to_add > 0 ? std::clamp<int64_t>(wanted, 0, left) : std::clamp<int64_t>(wanted, left, 0);
  }

  void clean_up() {
    int64_t limit = deployment_.spec().revision_history_limit_or(10);
    std::vector<ObjectPtr> history;
    for (const ObjectPtr& set : old_)
      if (!set->deleting()) history.push_back(set);
    std::stable_sort(history.begin(), history.end(),
                     [](const ObjectPtr& a, const ObjectPtr& b) { return revision_of(*a) < revision_of(*b); });
    for (int64_t i = 0; i < int64_t(history.size()) - limit; ++i) {
      const ObjectPtr& set = history[size_t(i)];
      if (spec_replicas(*set) == 0 && status_count(*set, &SetStatus::replicas) == 0 && has_observed(*set))
        plan_.steps.push_back({DeploymentStep::What::remove, set, {}, 0, 0});
    }
  }

  // ---- status ----

  json::object status_counts() const {
    json::object status = deployment_.status().members();
    int64_t available = sum_status(all_, &SetStatus::available_replicas);
    set_count(status, "observedGeneration", deployment_.metadata().generation());
    set_count(status, "replicas", sum_status(all_, &SetStatus::replicas));
    set_count(status, "updatedReplicas", new_ ? status_count(*new_, &SetStatus::replicas) : 0);
    set_count(status, "readyReplicas", sum_status(all_, &SetStatus::ready_replicas));
    set_count(status, "availableReplicas", available);
    set_count(status, "unavailableReplicas", std::max<int64_t>(sum(all_, spec_replicas) - available, 0));
    int64_t terminating = sum_status(all_, &SetStatus::terminating_replicas);
    if (terminating || status.contains("terminatingReplicas")) status["terminatingReplicas"] = terminating;
    return status;
  }

  bool complete(view::DeploymentStatus status) const {
    return status.updated_replicas() == replicas_ && status.replicas() == replicas_ && status.available_replicas() == replicas_;
  }

  void set(std::string_view type, std::string_view state, std::string_view reason, std::string message) {
    view::DeploymentCondition present(find_condition(conditions_, type));
    if (present && present.status() == state && present.reason() == reason) return;
    set_condition(conditions_, {std::string(type), std::string(state), std::string(reason), std::move(message)}, now_, true);
  }

  json::value status(bool rolling_out) {
    json::object status = status_counts();
    view::DeploymentStatus counts(status);
    bool enough = counts.available_replicas() >= replicas_ - max_unavailable_;
    if (enough) set("Available", "True", "MinimumReplicasAvailable", "Deployment has minimum availability.");
    else set("Available", "False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.");
    if (!deadline()) drop_condition(conditions_, "Progressing");
    else if (!object_.deleting()) progress(counts, rolling_out);
    copy_failure();
    status["conditions"] = conditions_;
    return status;
  }

  std::optional<std::chrono::seconds> deadline() const {
    view::DeploymentSpec spec = deployment_.spec();
    if (!spec.has_progress_deadline_seconds() || spec.progress_deadline_seconds() >= 2147483647) return std::nullopt;
    return bounded_seconds(spec.progress_deadline_seconds());
  }

  std::string set_name() const {
    if (new_) return "ReplicaSet " + coracle::quoted(new_->name());
    if (!created_name_.empty()) return "ReplicaSet " + coracle::quoted(created_name_);
    return "Deployment " + coracle::quoted(object_.name());
  }

  void progress(view::DeploymentStatus status, bool rolling_out) {
    view::DeploymentCondition present(find_condition(conditions_, "Progressing"));
    std::string reason(present.reason());
    if (reason == "ProgressDeadlineExceeded" && !rolling_out) return;  // pausing does not hide a failure to progress
    if (deployment_.spec().paused()) return set("Progressing", "Unknown", "DeploymentPaused", "Deployment is paused");
    if (reason == "DeploymentPaused") return set("Progressing", "Unknown", "DeploymentResumed", "Deployment is resumed");
    if (!rolling_out) return;
    if (!created_name_.empty())
      return set("Progressing", "True", "NewReplicaSetCreated", "Created new replica set " + coracle::quoted(created_name_));
    if (!present && new_)
      set("Progressing", "True", "FoundNewReplicaSet", "Found new replica set " + coracle::quoted(new_->name()));
    bool settled = status.replicas() == status.updated_replicas() && reason == "NewReplicaSetAvailable";
    if (settled) return;
    if (complete(status)) {
      set("Progressing", "True", "NewReplicaSetAvailable", set_name() + " has successfully progressed.");
    } else if (progressed(status)) {
      // Progress restarts the deadline: it sets lastUpdateTime; lastTransitionTime stays while the status is True.
      set_condition(conditions_, {"Progressing", "True", "ReplicaSetUpdated", set_name() + " is progressing."}, now_, true);
      look_at_deadline();
    } else if (timed_out()) {
      set("Progressing", "False", "ProgressDeadlineExceeded", set_name() + " has timed out progressing.");
    } else {
      look_at_deadline();
    }
  }

  bool progressed(view::DeploymentStatus status) const {
    view::DeploymentStatus before = deployment_.status();
    int64_t old_now = status.replicas() - status.updated_replicas(), old_before = before.replicas() - before.updated_replicas();
    return status.updated_replicas() > before.updated_replicas() || status.ready_replicas() > before.ready_replicas() ||
           status.available_replicas() > before.available_replicas() || old_now < old_before;
  }

  // The time until the progress deadline; negative if it is over.
  std::optional<std::chrono::nanoseconds> time_left() const {
    view::DeploymentCondition present(find_condition(conditions_, "Progressing"));
    if (!present || !deadline()) return std::nullopt;
    auto moment = parse_time(present.last_update_time());
    if (!moment) return std::nullopt;
    return *deadline() - (observed_.since ? observed_.since(*moment) : now_ - *moment);
  }

  bool timed_out() const {
    std::string_view reason = view::DeploymentCondition(find_condition(conditions_, "Progressing")).reason();
    if (reason == "ProgressDeadlineExceeded") return true;
    if (reason == "NewReplicaSetAvailable") return false;
    auto left = time_left();
    return left && left->count() < 0;
  }

  void look_at_deadline() {
    auto left = time_left();
    if (left) plan_.again = std::max<std::chrono::nanoseconds>(*left, std::chrono::seconds(0)) + std::chrono::seconds(1);
  }

  // Copies the ReplicaFailure condition of a set to the Deployment.
  void copy_failure() {
    for (const ObjectPtr& set : all_) {
      if (set != new_ && new_) continue;
      view::ReplicaSetCondition failure(find_condition(set->json(), "ReplicaFailure"));
      if (!failure) continue;
      return this->set("ReplicaFailure", failure.status(), failure.reason(), std::string(failure.message()));
    }
    drop_condition(conditions_, "ReplicaFailure");
  }

  const Object& object_;
  view::Deployment deployment_;
  const ObservedDeployment& observed_;
  const WallTime now_;
  std::vector<ObjectPtr> all_, old_;  // oldest first
  ObjectPtr new_;
  int64_t replicas_ = 1, max_surge_ = 0, max_unavailable_ = 0;
  bool rolling_ = true;
  std::string created_name_;
  json::array conditions_;
  DeploymentPlan plan_;
};

// Whether two objects are equal except for the member `left_out`, and for `other`, which `compare` compares if both have it.
using Compare = bool (*)(const json::value& a, const json::value& b);
bool equal_but(const json::value& a, const json::value& b, std::string_view left_out, std::string_view other = {},
               Compare compare = nullptr) {
  const json::object *one = a.if_object(), *two = b.if_object();
  if (!one || !two) return same_json(a, b);
  if (one->size() - one->contains(left_out) != two->size() - two->contains(left_out)) return false;
  return std::all_of(one->begin(), one->end(), [&](const auto& member) {
    if (member.key() == left_out) return true;
    const json::value* its = two->if_contains(member.key());
    if (!its) return false;
    return compare && member.key() == other ? compare(member.value(), *its) : same_json(member.value(), *its);
  });
}

}  // namespace

std::string template_hash(const json::value& pod_template, int64_t collisions) {
  return name_hash(to_text(pod_template), collisions);
}

// Compares without a copy, because a template may have megabytes and is compared with those of many sets.
bool same_template(const json::value& a, const json::value& b) {
  return equal_but(a, b, "", "metadata", [](const json::value& one, const json::value& two) {
    return equal_but(one, two, "", "labels",
                     [](const json::value& mine, const json::value& its) { return equal_but(mine, its, kHashLabel); });
  });
}

DeploymentPlan plan_deployment(const ObservedDeployment& observed, WallTime now) {
  return DeploymentPlanner(observed, now).plan();
}

json::value status_after_collision(const Object& deployment) {
  view::DeploymentStatus before = view::Deployment(deployment).status();
  json::object status = before.members();
  status["collisionCount"] = before.collision_count() + 1;
  return status;
}

json::value status_after_refusal(const Object& deployment, const std::string& message, WallTime now) {
  view::DeploymentStatus before = view::Deployment(deployment).status();
  json::object status = before.members();
  json::array conditions = before.conditions().raw();
  view::DeploymentCondition present(find_condition(conditions, "Progressing"));
  if (present.reason() != "ReplicaSetCreateError" || present.message() != message)
    set_condition(conditions, {"Progressing", "False", "ReplicaSetCreateError", message}, now, true);
  status["conditions"] = std::move(conditions);
  return status;
}

}  // namespace coracle::controller

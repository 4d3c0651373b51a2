// SPDX-License-Identifier: Apache-2.0
// The plan of a StatefulSet. See stateful_set.h. All functions are pure.
#include <algorithm>
#include <iterator>
#include <map>

#include "daemon/controller/workload/history.h"
#include "daemon/controller/workload/pod_control.h"
#include "daemon/controller/workload/stateful_set.h"
#include "runtime/base/text.h"

namespace coracle::controller {
namespace {

constexpr std::string_view kPodNameLabel = "statefulset.kubernetes.io/pod-name", kIndexLabel = "apps.kubernetes.io/pod-index";

// ---- reading pods ----

std::string_view revision_label(const Object& pod) { return pod.label(kRevisionLabel); }
bool running_and_ready(const Object& pod) { return view::Pod(pod).status().phase() == "Running" && is_ready(view::Pod(pod)); }
bool pending(const Object& pod) {
  std::string_view phase = view::Pod(pod).status().phase();
  return phase.empty() || phase == "Pending";
}

std::chrono::seconds min_ready_of(const Object& set) {
  return bounded_seconds(view::StatefulSet(set).spec().min_ready_seconds());
}

// ---- status ----

struct Counts {
  int64_t all = 0, ready = 0, available = 0, current = 0, updated = 0;
};

json::object status_with(const Object& set, const Counts& counts) {
  json::object status = view::StatefulSet(set).status().members();
  status["observedGeneration"] = view::StatefulSet(set).metadata().generation();
  status["replicas"] = counts.all;
  status["availableReplicas"] = counts.available;
  set_count(status, "readyReplicas", counts.ready);
  set_count(status, "currentReplicas", counts.current);
  set_count(status, "updatedReplicas", counts.updated);
  return status;
}

// `stays`: false for a terminating pod, which counts for no revision.
Counts count(const Object& set, const std::vector<ObjectPtr>& pods, const std::function<bool(const Object&)>& stays,
             std::string_view current, std::string_view update, WallTime now) {
  Counts counts;
  for (const ObjectPtr& pod : pods) {
    ++counts.all;
    if (running_and_ready(*pod)) {
      ++counts.ready;
      counts.available += pod_available(view::Pod(*pod), min_ready_of(set), now);
    }
    if (!stays(*pod)) continue;
    counts.current += revision_label(*pod) == current;
    counts.updated += revision_label(*pod) == update;
  }
  return counts;
}

// ---- claims ----

bool same_name(const OwnerReference& reference, const Kind& kind, const std::string& name) {
  return reference.api_version == kind.api_version() && reference.kind == kind.kind && reference.name == name;
}

// The desired ownerReferences of a claim; nullopt if they are right, or must not be changed because an earlier set or pod of that
// name still owns it.
std::optional<json::array> owners_of_claim(const Object& claim, const Object& set, const Object& pod, bool condemned) {
  view::StatefulSetPersistentVolumeClaimRetentionPolicy policy =
      view::StatefulSet(set).spec().persistent_volume_claim_retention_policy();
  bool when_deleted = policy.when_deleted() == "Delete", when_scaled = policy.when_scaled() == "Delete";
  bool has_set = false, has_pod = false, foreign = false, plain = false;
  for (const OwnerReference& reference : claim.owners()) {
    bool of_set = same_name(reference, set.kind(), set.name()), of_pod = same_name(reference, kPod, pod.name());
    if ((of_set && reference.uid != set.uid()) || (of_pod && reference.uid != pod.uid())) return std::nullopt;
    has_set |= of_set;
    has_pod |= of_pod;
    plain |= (of_set || of_pod) && !reference.controller;
    foreign |= !of_set && !of_pod && reference.controller;
  }
  foreign &= when_deleted || when_scaled;  // another owner decides about it
  bool want_pod = !foreign && when_scaled && condemned;
  bool want_set = !foreign && when_deleted && !want_pod;
  if (has_set == want_set && has_pod == want_pod && !plain) return std::nullopt;
  json::array owners;
  for (view::OwnerReference reference : view::PersistentVolumeClaim(claim).metadata().owner_references())
    if (reference.uid() != set.uid() && reference.uid() != pod.uid()) owners.push_back(reference.raw());
  if (want_set) owners.push_back(controller_reference(set));
  if (want_pod) owners.push_back(controller_reference(pod));
  return owners;
}

// Whether the policy does not apply to the claim, because another controller, or an earlier set or pod of that name, owns it.
bool has_other_controller(const Object& claim, const Object& set, const Object& pod) {
  view::StatefulSetPersistentVolumeClaimRetentionPolicy policy =
      view::StatefulSet(set).spec().persistent_volume_claim_retention_policy();
  if (policy.when_deleted() != "Delete" && policy.when_scaled() != "Delete") return false;
  return std::ranges::any_of(claim.owners(), [&](const OwnerReference& reference) {
    if (same_name(reference, set.kind(), set.name())) return reference.uid != set.uid();
    if (same_name(reference, kPod, pod.name())) return reference.uid != pod.uid();
    return reference.controller;
  });
}

// ---- the plan ----

class StatefulSetPlanner {
 public:
  StatefulSetPlanner(const ObservedStatefulSet& observed, WallTime now)
      : observed_(observed),
        set_(*observed.set),
        spec_(view::StatefulSet(set_).spec()),
        now_(now),
        replicas_(spec_.replicas_or(1)),
        start_(spec_.ordinals().start()),
        ordered_(spec_.pod_management_policy() != "Parallel"),
        min_ready_(min_ready_of(set_)) {
    for (const ObjectPtr& pod : observed.pods) {
      auto ordinal = ordinal_of(set_, pod->name());
      if (!ordinal) continue;
      bool wanted = *ordinal >= start_ && *ordinal < start_ + replicas_;
      (wanted ? wanted_ : condemned_)[*ordinal] = pod;
    }
  }

  StatefulSetPlan plan() {
    if (keep_wanted() && remove_condemned()) roll();
    plan_.status = status();
    look_again(next_available(observed_.pods, min_ready_, now_));
    return std::move(plan_);
  }

 private:
  using What = StatefulSetStep::What;

  bool leaving(const Object& pod) const {
    return pod.deleting() || observed_.removed.contains(pod.uid()) || going_.contains(pod.uid());
  }
  bool unavailable(const Object& pod) const { return leaving(pod) || !pod_available(view::Pod(pod), min_ready_, now_); }
  bool updated(const Object& pod) const { return revision_label(pod) == observed_.update->name(); }
  bool full() const { return plan_.steps.size() - told_ >= kStatefulSetBurst; }
  // A step that only tells something, and may be due again each time: it must not keep others from their turn.
  void tell(StatefulSetStep step) {
    plan_.steps.push_back(std::move(step));
    ++told_;
  }

  void look_again(std::optional<std::chrono::nanoseconds> in) {
    if (in && (!plan_.again || *in < *plan_.again)) plan_.again = in;
  }
  void remove(const ObjectPtr& pod) {
    going_.insert(pod->uid());
    plan_.steps.push_back({What::remove, pod->name(), pod, {}});
  }

  // ---- desired pods. False: no other step is allowed until they are available. ----

  bool keep_wanted() {
    // Without claims left, no further pod can be created, and there may be two thousand million of them.
    auto ends = [&] { return full() || claims_made_ > kClaimsBurst; };
    for (int64_t ordinal = start_; ordinal < start_ + replicas_ && !ends(); ++ordinal) {
      auto found = wanted_.find(ordinal);
      bool well = found == wanted_.end() ? create(ordinal) : keep(ordinal, found->second);
      if (!well && ordered_) return false;
    }
    return !ends();
  }

  // Returns whether the pod exists and is available.
  bool keep(int64_t ordinal, const ObjectPtr& pod) {
    if (is_terminal(view::Pod(*pod))) {
      if (!leaving(*pod)) replace(pod);
      return false;
    }
    const bool is_pending = pending(*pod);
    if (is_pending) {
      (void)make_claims(ordinal);  // further claims are created in the next sync
      (void)keep_claims(ordinal, *pod, false, true);
    }
    if (ordered_ && (leaving(*pod) || !running_and_ready(*pod) || unavailable(*pod))) return false;
    const bool owns = !is_pending && keep_claims(ordinal, *pod, false);
    const bool is_mended = mend(ordinal, pod);
    if (owns && !is_mended) plan_.steps.push_back({What::claims_owned, pod->name(), pod, {}});
    return true;
  }

  void replace(const ObjectPtr& ended) {
    auto wait = observed_.backing_off(ended->name());
    if (wait) look_again(wait);
    else remove(ended);
  }

  // Repairs labels and volumes of a pod that was adopted or changed. Returns whether there is something to repair now.
  bool mend(int64_t ordinal, const ObjectPtr& pod) {
    bool labelled = pod->label(kPodNameLabel) == pod->name(), mounted = mounts_claims(*pod, ordinal);
    if (labelled && mounted) return false;
    json::value body = pod->json();
    label(body, pod->name(), ordinal);
    if (!mounted) mount_claims(body, ordinal);
    if (!make_claims(ordinal)) return false;
    plan_.steps.push_back({What::update, pod->name(), pod, std::move(body)});
    return true;
  }

  // Always returns false, because the pod does not exist yet.
  bool create(int64_t ordinal) {
    std::string name = set_.name() + "-" + std::to_string(ordinal);
    if (claims_stale(ordinal, name)) return false;  // the garbage collector deletes them first
    std::vector<std::string> going;
    for (view::PersistentVolumeClaim claim_template : claim_templates()) {
      ObjectPtr claim = observed_.claim(claim_name(set_, claim_template.metadata().name(), ordinal));
      if (claim && claim->deleting()) going.push_back("pvc " + claim->name() + " is being deleted");
    }
    if (!make_claims(ordinal)) return false;
    const std::string why = going.size() > 1 ? "[" + join(going, ", ") + "]" : join(going, ", ");  // as Go joins errors
    if (going.empty()) plan_.steps.push_back({What::create, name, nullptr, new_pod(name, ordinal)});
    else tell({What::refuse, name, nullptr, json::string(why)});
    return false;
  }

  json::value new_pod(const std::string& name, int64_t ordinal) const {
    const Object& revision = due_revision(ordinal);
    json::value pod = pod_from_template(set_, template_of(revision));
    json::object& metadata = make_object(pod, "metadata");
    metadata.erase("generateName");
    metadata["name"] = name;
    label(pod, name, ordinal);
    make_object(pod, "metadata.labels")[kRevisionLabel] = revision.name();
    json::object& spec = make_object(pod, "spec");
    spec["hostname"] = name;
    if (std::string_view subdomain = spec_.service_name(); !subdomain.empty()) spec["subdomain"] = subdomain;
    mount_claims(pod, ordinal);
    return pod;
  }

  // Pods below the partition keep their revision; without a partition, the first status.currentReplicas pods do.
  const Object& due_revision(int64_t ordinal) const {
    view::RollingUpdateStatefulSetStrategy rolling = spec_.update_strategy().rolling_update();
    bool rolls = spec_.update_strategy().type() == "RollingUpdate";
    int64_t kept = rolling ? rolling.partition() : rolls ? view::StatefulSet(set_).status().current_replicas() : 0;
    return ordinal < start_ + kept ? *observed_.current : *observed_.update;
  }

  static void label(json::value& pod, const std::string& name, int64_t ordinal) {
    json::object& labels = make_object(pod, "metadata.labels");
    labels[kPodNameLabel] = name;
    labels[kIndexLabel] = std::to_string(ordinal);
  }

  // ---- claims ----

  view::Range<view::PersistentVolumeClaim> claim_templates() const { return spec_.volume_claim_templates(); }

  // False: the limit of claims per plan is reached, and this pod has to wait.
  bool make_claims(int64_t ordinal) {
    for (view::PersistentVolumeClaim claim_template : claim_templates()) {
      std::string name = claim_name(set_, claim_template.metadata().name(), ordinal);
      if (observed_.claim(name)) continue;
      if (++claims_made_ > kClaimsBurst) {
        look_again(std::chrono::nanoseconds(0));
        return false;
      }
      json::value body = claim_template.raw();
      json::object& metadata = make_object(body, "metadata");
      metadata["name"] = name;
      metadata["namespace"] = set_.ns();
      for (const auto& [key, value] : spec_.selector().match_labels()) make_object(body, "metadata.labels")[key] = value;
      if (spec_.persistent_volume_claim_retention_policy().when_deleted() == "Delete")
        make_object(body, "metadata")["ownerReferences"] = json::array{controller_reference(set_)};
      body.get_object().erase("status");
      plan_.steps.push_back({What::create_claim, set_.name() + "-" + std::to_string(ordinal), nullptr, std::move(body)});
    }
    return true;
  }

  // Returns whether claims get other owners. Only then, and of a new pod, those that are left to another controller are told.
  bool keep_claims(int64_t ordinal, const Object& pod, bool condemned, bool is_new = false) {
    std::vector<StatefulSetStep> owned, conflicts;
    for (view::PersistentVolumeClaim claim_template : claim_templates()) {
      ObjectPtr claim = observed_.claim(claim_name(set_, claim_template.metadata().name(), ordinal));
      if (!claim) continue;
      if (has_other_controller(*claim, set_, pod)) conflicts.push_back({What::conflict, pod.name(), claim, {}});
      auto owners = owners_of_claim(*claim, set_, pod, condemned);
      if (owners) owned.push_back({What::own_claim, pod.name(), claim, std::move(*owners)});
    }
    if (is_new || !owned.empty())
      for (StatefulSetStep& conflict : conflicts) tell(std::move(conflict));
    std::ranges::move(owned, std::back_inserter(plan_.steps));
    return !owned.empty();
  }

  // Whether a claim is left from a scaled-down pod of this name and is about to be deleted with it.
  bool claims_stale(int64_t ordinal, const std::string& pod) const {
    if (spec_.persistent_volume_claim_retention_policy().when_scaled() != "Delete") return false;
    for (view::PersistentVolumeClaim claim_template : claim_templates()) {
      ObjectPtr claim = observed_.claim(claim_name(set_, claim_template.metadata().name(), ordinal));
      if (!claim) continue;
      for (const OwnerReference& reference : claim->owners())
        if (same_name(reference, kPod, pod)) return true;
    }
    return false;
  }

  bool mounts_claims(const Object& pod, int64_t ordinal) const {
    std::map<std::string_view, std::string_view> claims;  // by volume name, which is unique in a pod
    for (view::Volume volume : view::Pod(pod).spec().volumes())
      claims.emplace(volume.name(), volume.persistent_volume_claim().claim_name());
    return std::all_of(claim_templates().begin(), claim_templates().end(), [&](view::PersistentVolumeClaim claim_template) {
      std::string_view name = claim_template.metadata().name();
      auto found = claims.find(name);
      return found != claims.end() && found->second == claim_name(set_, name, ordinal);
    });
  }

  // Replaces the template's volumes of the same names.
  void mount_claims(json::value& pod, int64_t ordinal) const {
    if (claim_templates().empty()) return;
    json::array volumes;
    std::set<std::string_view> names;
    for (view::PersistentVolumeClaim claim_template : claim_templates()) {
      std::string_view name = claim_template.metadata().name();
      names.insert(name);
      volumes.push_back({{"name", name}, {"persistentVolumeClaim", {{"claimName", claim_name(set_, name, ordinal)}}}});
    }
    for (view::Volume volume : view::Pod(pod).spec().volumes())
      if (!names.contains(volume.name())) volumes.push_back(volume.raw());
    make_object(pod, "spec")["volumes"] = std::move(volumes);
  }

  // ---- surplus pods. False: they are not deleted yet, and are deleted one after the other. ----

  bool remove_condemned() {
    for (const auto& [ordinal, pod] : condemned_) (void)keep_claims(ordinal, *pod, true);
    ObjectPtr first_unavailable;
    for (const auto& [ordinal, pod] : condemned_)
      if (!first_unavailable && unavailable(*pod)) first_unavailable = pod;
    for (auto it = condemned_.rbegin(); it != condemned_.rend(); ++it) {
      const ObjectPtr& pod = it->second;
      bool waits = ordered_ && (leaving(*pod) || (unavailable(*pod) && pod != first_unavailable));
      if (!waits && !leaving(*pod) && !full()) remove(pod);
      if (ordered_) return false;
    }
    return true;
  }

  // ---- update: deletes pods of other revisions, last first ----

  void roll() {
    if (spec_.update_strategy().type() == "OnDelete") return;
    view::RollingUpdateStatefulSetStrategy rolling = spec_.update_strategy().rolling_update();
    int64_t first = start_ + rolling.partition();
    const json::value* most = rolling.max_unavailable();
    if (most) roll_within(first, std::max<int64_t>(1, scaled(most, replicas_, false, 1)));
    else roll_one(first);
  }

  // Deletes one pod if all after it are updated and available, whether or not it works itself. So a broken template stops at the
  // first pod.
  void roll_one(int64_t first) {
    for (int64_t ordinal = start_ + replicas_ - 1; ordinal >= first; --ordinal) {
      auto found = wanted_.find(ordinal);
      if (found == wanted_.end() || leaving(*found->second)) return;
      if (!updated(*found->second)) return full() ? void() : remove(found->second);
      if (unavailable(*found->second)) return;
    }
  }

  void roll_within(int64_t first, int64_t budget) {
    std::vector<ObjectPtr> old;
    for (int64_t ordinal = start_ + replicas_ - 1; ordinal >= start_; --ordinal) {
      auto found = wanted_.find(ordinal);
      if (found == wanted_.end() || unavailable(*found->second)) --budget;
      if (found == wanted_.end() || leaving(*found->second) || updated(*found->second)) continue;
      if (ordinal >= first) old.push_back(found->second);
    }
    // Pods that are not available are deleted without using maxUnavailable. In ordered mode there is no such pod here.
    for (const ObjectPtr& pod : old)
      if (unavailable(*pod) && !full()) remove(pod);
    for (const ObjectPtr& pod : old)
      if (budget > 0 && !leaving(*pod) && !full()) remove(pod), --budget;
  }

  json::value status() const {
    const std::string &current = observed_.current->name(), &update = observed_.update->name();
    Counts counts = count(
        set_, observed_.pods, [this](const Object& pod) { return !pod.deleting() && !observed_.removed.contains(pod.uid()); },
        current, update, now_);  // pods that this plan deletes still count, because the deletion may fail
    bool rolls = spec_.update_strategy().type() == "RollingUpdate";
    bool complete = rolls && counts.updated == replicas_ && counts.ready == replicas_ && counts.all == replicas_;
    if (complete) counts.current = counts.updated;
    json::object status = status_with(set_, counts);
    status["currentRevision"] = complete ? update : current;
    status["updateRevision"] = update;
    status["collisionCount"] = observed_.collisions;
    return status;
  }

  const ObservedStatefulSet& observed_;
  const Object& set_;
  const view::StatefulSetSpec spec_;
  const WallTime now_;
  const int64_t replicas_, start_;
  const bool ordered_;
  const std::chrono::seconds min_ready_;
  std::map<int64_t, ObjectPtr> wanted_, condemned_;  // by ordinal
  std::set<std::string> going_;                      // uids of the pods that this plan deletes
  size_t claims_made_ = 0, told_ = 0;
  StatefulSetPlan plan_;
};

}  // namespace

StatefulSetPlan plan_stateful_set(const ObservedStatefulSet& observed, WallTime now) {
  return StatefulSetPlanner(observed, now).plan();
}

json::value ending_stateful_set_status(const Object& set, const std::vector<ObjectPtr>& pods, WallTime now) {
  view::StatefulSetStatus status = view::StatefulSet(set).status();
  std::string_view current = status.current_revision(), update = status.update_revision();
  return status_with(set, count(
                              set, pods, [](const Object& pod) { return !pod.deleting(); }, current, update, now));
}

std::optional<int64_t> ordinal_of(const Object& set, std::string_view pod) {
  const std::string& name = set.name();
  if (pod.size() < name.size() + 2 || !pod.starts_with(name) || pod[name.size()] != '-') return std::nullopt;
  std::string_view digits = pod.substr(name.size() + 1);
  auto ordinal = parse_number<int32_t>(digits);
  if (!ordinal || *ordinal < 0 || std::to_string(*ordinal) != digits) return std::nullopt;
  return *ordinal;
}

std::string claim_name(const Object& set, std::string_view claim_template, int64_t ordinal) {
  return std::string(claim_template) + "-" + set.name() + "-" + std::to_string(ordinal);
}

bool may_be_claim_of(const Object& set, std::string_view claim) {
  if (claim.find("-" + set.name() + "-") == claim.npos) return false;  // avoids parsing most names
  view::Range<view::PersistentVolumeClaim> templates = view::StatefulSet(set).spec().volume_claim_templates();
  return std::any_of(templates.begin(), templates.end(), [&](view::PersistentVolumeClaim claim_template) {
    std::string prefix = std::string(claim_template.metadata().name()) + "-";
    return claim.starts_with(prefix) && ordinal_of(set, claim.substr(prefix.size()));
  });
}

}  // namespace coracle::controller

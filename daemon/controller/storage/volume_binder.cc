// SPDX-License-Identifier: Apache-2.0
// The persistent volume binder: binds claims to volumes and writes the phases of both, as planned in volume_binder.h.
//   claims, volumes, classes ──▶ key ──▶ plan ──▶ claimRef ▸ volume Bound ▸ volumeName ▸ claim Bound
// claimRef is written first: when two claims are planned for one volume, only one of the writes succeeds.
//   keys: {namespace, name} a claim · {"", "volume/<name>"} a volume
#include "daemon/controller/storage/volume_binder.h"

#include <algorithm>

#include "daemon/controller/controller.h"
#include "daemon/controller/shared/common.h"
#include "daemon/volume/backing.h"
#include "runtime/base/text.h"
#include "store/kinds/meta/default_object.h"
#include "store/schema/views.h"

namespace coracle::controller {
namespace {

constexpr std::string_view kVolumeKeyPrefix = "volume/";  // a claim's name contains no slash
constexpr std::chrono::minutes kTellAgain{45};            // events expire after an hour
constexpr const char* kUnschedulable = "claims-of-unschedulable";

// The claims of a pod for which the scheduler has found no node. One that it has not looked at yet is no reason to write an
// event.
std::vector<Key> claims_of_unschedulable(const Object& pod) {
  std::vector<Key> claims;
  view::Pod view(pod);
  if (!view.spec().node_name().empty() || is_terminal(view)) return claims;
  auto scheduled = pod_condition(view, "PodScheduled");
  if (!scheduled || scheduled->status() != "False") return claims;
  for (view::Volume volume : view.spec().volumes())
    if (std::string name = volume::claim_name(pod.name(), volume.raw()); !name.empty())
      claims.push_back({pod.ns(), std::move(name)});
  return claims;
}

// For events about a volume's claim that the volume causes.
Key key_of_volumes_claim(const Key& volume) { return {"claim", volume.name}; }

Key key_of_volume(std::string_view name) { return {"", std::string(kVolumeKeyPrefix) + std::string(name)}; }

class VolumeBinder : public Controller {
 public:
  explicit VolumeBinder(const Context& context)
      : client_(context.client),
        clock_(context.clock),
        claims_(context.informers.of(kPersistentVolumeClaim)),
        volumes_(context.informers.of(kPersistentVolume)),
        classes_(context.informers.of(kStorageClass)),
        nodes_(context.informers.of(kNode)),
        pods_(context.informers.of(kPod)),
        recorder_(context.events, "persistentvolume-controller"),
        expander_(context.events, "volume_expand"),
        own_claims_(context.clock),
        own_volumes_(context.clock) {}

  std::string_view name() const override { return "persistentvolume"; }

  void subscribe(const Enqueue& enqueue) override {
    volumes_.add_index("claim", [](const Object& volume) -> std::vector<std::string> {
      view::PersistentVolumeSpec spec = view::PersistentVolume(volume).spec();
      if (!spec.has_claim_ref()) return {};
      return {Key{std::string(spec.claim_ref().namespace_()), std::string(spec.claim_ref().name())}.text()};
    });
    claims_.on_change([=, this](const Informer::Change& change) {
      const Object& claim = change.any();
      if (!change.after) forget(claim.key());
      enqueue.now(claim.key());
      for (const ObjectPtr& volume : volumes_.by_index("claim", claim.key().text())) enqueue.now(key_of_volume(volume->name()));
    });
    volumes_.on_change([=, this](const Informer::Change& change) {
      Key key = key_of_volume(change.any().name());
      if (!change.after) forget(key);
      enqueue.now(key);
      name_claims(change, enqueue);
    });
    classes_.on_change([=, this](const Informer::Change&) { name_waiting(enqueue); });
    nodes_.on_change([=, this](const Informer::Change& change) {  // only_node may have changed
      if (!change.before || !change.after) name_waiting(enqueue);
    });
    pods_.add_index(kUnschedulable, [](const Object& pod) {
      std::vector<std::string> claims;
      for (const Key& claim : claims_of_unschedulable(pod)) claims.push_back(claim.text());
      return claims;
    });
    pods_.on_change([=, this](const Informer::Change& change) {
      if (!change.after || (change.before && claims_of_unschedulable(*change.before) == claims_of_unschedulable(*change.after)))
        return;
      for (const Key& claim : claims_of_unschedulable(*change.after)) enqueue.now(claim);
    });
  }

  Result<Outcome> reconcile(const Key& key) override {
    if (!own_claims_.shown(key, claims_) || !own_volumes_.shown(key, volumes_)) return Outcome{OwnWrites::kLookAgain};
    return key.name.starts_with(kVolumeKeyPrefix) ? reconcile_volume(key) : reconcile_claim(key);
  }

 private:
  void forget(const Key& key) {
    own_claims_.forget(key), own_volumes_.forget(key);
    told_.with([&](auto& told) { told.erase(key), told.erase(key_of_volumes_claim(key)); });
  }

  // ---- keys of a change ----

  void name_waiting(const Enqueue& enqueue) const {
    for (const ObjectPtr& claim : claims_.list())
      if (!volume::is_bound(*claim)) enqueue.now(claim->key());
  }

  // The claims of claimRef before and after; claims that name the volume; all unbound claims when the volume is free.
  void name_claims(const Informer::Change& change, const Enqueue& enqueue) const {
    for (const ObjectPtr& volume : {change.before, change.after}) {
      if (!volume || !view::PersistentVolume(*volume).spec().has_claim_ref()) continue;
      view::ObjectReference reference = view::PersistentVolume(*volume).spec().claim_ref();
      enqueue.now({std::string(reference.namespace_()), std::string(reference.name())});
    }
    for (const ObjectPtr& claim : claims_.list()) {
      view::PersistentVolumeClaimSpec spec = view::PersistentVolumeClaim(*claim).spec();
      bool free = change.after && !view::PersistentVolume(*change.after).spec().has_claim_ref();
      bool waits = free && !volume::is_bound(*claim);
      if (waits || spec.volume_name() == change.any().name()) enqueue.now(claim->key());
    }
  }

  // ---- claims ----

  Result<Outcome> reconcile_claim(const Key& key) {
    ObjectPtr claim = claims_.get(key);
    if (!claim) return forget(key), Outcome{};  // again: it may have been reconciled while it was deleted
    ClaimPlan plan = plan_claim(observe(claim));
    Outcome outcome;
    if (plan.event) outcome.again = tell(key, *claim, *plan.event, recorder_);
    if (plan.expansion) outcome.again = tell(key, *claim, *plan.expansion, expander_);
    if (!plan.storage_class.empty()) {
      TRY(note_claim(key, client_.patch(kPersistentVolumeClaim, key, PatchType::merge,
                                        {{"spec", {{"storageClassName", plan.storage_class}}}})));
    } else if (plan.bind) {
      TRY(bind(key, claim, plan.bind));
      if (!plan.expansion) told_.with([&](auto& told) { told.erase(key); });
    } else if (plan.unselect) {
      json::value patch = {{"metadata", {{"annotations", {{volume::kSelectedNode, nullptr}}}}}};
      TRY(note_claim(key, client_.patch(kPersistentVolumeClaim, key, PatchType::merge, patch)));
    } else if (!plan.node.empty() || (!plan.provisioner.empty() && claim->annotation(volume::kProvisioner) != plan.provisioner)) {
      json::value patch = {
          {"metadata",
           {{"annotations", {{volume::kProvisioner, plan.provisioner}, {volume::kBetaProvisioner, plan.provisioner}}}}}};
      if (!plan.node.empty()) make(patch, "metadata.annotations").as_object()[volume::kSelectedNode] = plan.node;
      TRY(note_claim(key, client_.patch(kPersistentVolumeClaim, key, PatchType::merge, patch)));
    } else if (!plan.phase.empty()) {
      ObjectPtr written = TRY(update_status(client_, *claim, unbound_status(*claim, plan.phase)));
      if (written) own_claims_.wrote(key, written->revision());
    }
    return outcome;
  }

  ObservedClaim observe(const ObjectPtr& claim) const {
    ObservedClaim observed{.claim = claim};
    std::string named(view::PersistentVolumeClaim(*claim).spec().volume_name());
    if (!named.empty()) {
      observed.named = volumes_.get({"", named});
      return observed;
    }
    observed.volumes = volumes_.list();
    std::string storage_class = volume::class_of(*claim);
    if (!storage_class.empty()) observed.storage_class = classes_.get({"", storage_class});
    else observed.default_class = default_object(classes_.list(), kDefaultStorageClass);
    if (nodes_.size() == 1) observed.only_node = nodes_.list().front()->name();
    std::string selected(claim->annotation(volume::kSelectedNode));
    observed.has_selected_node = selected.empty() || nodes_.get({"", selected}) != nullptr;
    for (const ObjectPtr& pod : pods_.by_index(kUnschedulable, claim->key().text())) observed.pods.push_back(pod->name());
    std::ranges::sort(observed.pods);
    return observed;
  }

  Result<void> bind(const Key& key, ObjectPtr claim, ObjectPtr volume) {
    if (auto body = with_claim(*volume, *claim)) {
      volume = TRY(client_.update(kPersistentVolume, *body).wrap("bind volume " + volume->name()));
      own_volumes_.wrote(key, volume->revision());
    }
    TRY(show_phase(key, *volume, "Bound", ""));
    if (auto body = with_volume(*claim, *volume)) {
      // The volume's claimRef says the same.
      claim = TRY(client_.update(kPersistentVolumeClaim, *body, {.is_repeated = true}).wrap("bind claim " + key.text()));
      own_claims_.wrote(key, claim->revision());
    }
    ObjectPtr written = TRY(update_status(client_, *claim, bound_status(*claim, *volume)));
    if (written) own_claims_.wrote(key, written->revision());
    return {};
  }

  Result<void> note_claim(const Key& key, Result<ObjectPtr> written) {
    if (!written) return written.take_error().wrap("write claim " + key.text());
    own_claims_.wrote(key, (*written)->revision());
    return {};
  }

  // ---- volumes ----

  Result<Outcome> reconcile_volume(const Key& key) {
    ObjectPtr volume = volumes_.get({"", key.name.substr(kVolumeKeyPrefix.size())});
    if (!volume) return forget(key), Outcome{};
    ObjectPtr claim = TRY(claim_named_by(*volume));
    VolumePlan plan = plan_volume(*volume, claim.get());
    Outcome outcome;
    if (plan.event) outcome.again = tell(key, *volume, *plan.event, recorder_);
    if (plan.of_claim) (void)tell(key_of_volumes_claim(key), *claim, *plan.of_claim, recorder_);  // at the same times
    if (plan.unbind) {
      volume = TRY(client_.update(kPersistentVolume, without_claim(*volume)).wrap("release volume " + volume->name()));
      own_volumes_.wrote(key, volume->revision());
    }
    if (!plan.phase.empty()) TRY(show_phase(key, *volume, plan.phase, plan.message));
    return outcome;
  }

  // The message is written only together with a new phase: otherwise another client may have written a more specific one.
  Result<void> show_phase(const Key& key, const Object& volume, std::string_view phase, const std::string& message) {
    view::PersistentVolumeStatus before = view::PersistentVolume(volume).status();
    if (before.phase() == phase) return {};
    json::object status = before.members();
    status["phase"] = phase;
    if (message.empty()) status.erase("message");
    else status["message"] = message;
    ObjectPtr written = TRY(update_status(client_, volume, std::move(status)));
    if (written) own_volumes_.wrote(key, written->revision());
    return {};
  }

  // A claim that the cache lacks is read from the store, because the data of a Released volume may be deleted.
  Result<ObjectPtr> claim_named_by(const Object& volume) {
    view::PersistentVolumeSpec spec = view::PersistentVolume(volume).spec();
    if (!spec.has_claim_ref()) return ObjectPtr();
    Key key{std::string(spec.claim_ref().namespace_()), std::string(spec.claim_ref().name())};
    ObjectPtr cached = claims_.get(key);
    if (cached && cached->uid() == spec.claim_ref().uid()) return cached;
    auto stored = client_.get(kPersistentVolumeClaim, key);
    if (!stored && stored.error().code() == Code::not_found) return ObjectPtr();
    return stored;
  }

  // ---- both ----

  // Records the event once, and again before it expires. `key`: of what plans the event. Returns the time until then.
  std::optional<std::chrono::nanoseconds> tell(const Key& key, const Object& about, const VolumeEvent& event,
                                               const EventRecorder& recorder) {
    auto left = told_.with([&](auto& told) -> std::chrono::nanoseconds {
      Told& last = told[key];
      auto past = clock_.steady() - last.at;
      if (last.message == event.message && past < kTellAgain) return kTellAgain - past;
      last = {event.message, clock_.steady()};
      return std::chrono::nanoseconds(0);
    });
    if (left.count() > 0) return left;
    if (event.warning) recorder.warning(about, event.reason, event.message);
    else recorder.normal(about, event.reason, event.message);
    return kTellAgain;
  }

  struct Told {
    std::string message;
    SteadyTime at{};
  };
  Client& client_;
  const Clock& clock_;
  Informer& claims_;
  Informer& volumes_;
  Informer& classes_;
  Informer& nodes_;
  Informer& pods_;
  EventRecorder recorder_, expander_;
  OwnWrites own_claims_, own_volumes_;
  Guarded<std::map<Key, Told>> told_;  // the last event of each key that still waits
};

}  // namespace

std::unique_ptr<Controller> make_volume_binder(const Context& context) { return std::make_unique<VolumeBinder>(context); }

}  // namespace coracle::controller

// SPDX-License-Identifier: Apache-2.0
// Generic ephemeral volumes: creates a claim for each volume of a pod with a claim template. The pod owns the claim, which is
// deleted with it.
//   keys: {namespace, name} a pod
// Source: Kubernetes "Ephemeral Volumes", generic; pkg/controller/volume/ephemeral (semantics, texts).
#include "daemon/controller/controller.h"
#include "daemon/controller/shared/common.h"
#include "daemon/volume/backing.h"
#include "runtime/base/text.h"

namespace coracle::controller {
namespace {

constexpr const char* kByClaim = "ephemeral-claim";
constexpr std::chrono::minutes kForeignToldAgain{45};  // events expire after an hour

bool has_ephemeral_volume(const Object& pod) {
  for (view::Volume volume : view::Pod(pod).spec().volumes())
    if (volume.has_ephemeral()) return true;
  return false;
}

// The claim for one volume of the pod.
json::value claim_for(const Object& pod, view::Volume volume) {
  view::PersistentVolumeClaimTemplate made_as = volume.ephemeral().volume_claim_template();
  json::object metadata{{"name", volume::claim_name(pod.name(), volume.raw())},
                        {"namespace", pod.ns()},
                        {"ownerReferences", json::array{controller_reference(pod)}}};
  if (made_as.metadata().has_labels()) metadata["labels"] = made_as.metadata().labels();
  if (made_as.metadata().has_annotations()) metadata["annotations"] = made_as.metadata().annotations();
  json::object claim{{"apiVersion", "v1"}, {"kind", "PersistentVolumeClaim"}, {"metadata", std::move(metadata)}};
  if (const json::value* spec = made_as.spec().pointer()) claim["spec"] = *spec;
  return claim;
}

class EphemeralVolumes : public Controller {
 public:
  explicit EphemeralVolumes(const Context& context)
      : client_(context.client),
        pods_(context.informers.of(kPod)),
        claims_(context.informers.of(kPersistentVolumeClaim)),
        recorder_(context.events, "ephemeral_volume") {}

  std::string_view name() const override { return "ephemeral-volume"; }

  void subscribe(const Enqueue& enqueue) override {
    pods_.on_change([=](const Informer::Change& change) {
      if (change.after && !change.before && has_ephemeral_volume(*change.after)) enqueue.now(change.after->key());
    });
    pods_.add_index(kByClaim, [](const Object& pod) {
      std::vector<std::string> claims;
      for (view::Volume volume : view::Pod(pod).spec().volumes())
        if (volume.has_ephemeral()) claims.push_back(Key{pod.ns(), volume::claim_name(pod.name(), volume.raw())}.text());
      return claims;
    });
    claims_.on_change([=, this](const Informer::Change& change) {  // the pod's own claim, or one that had its name
      if (change.after) return;
      for (const ObjectPtr& pod : pods_.by_index(kByClaim, change.before->key().text())) enqueue.now(pod->key());
    });
  }

  Result<Outcome> reconcile(const Key& key) override {
    ObjectPtr pod = pods_.get(key);
    if (!pod || !pod_active(*pod)) return Outcome{};
    Outcome outcome;
    for (view::Volume volume : view::Pod(*pod).spec().volumes()) {
      if (!volume.has_ephemeral()) continue;
      auto made = make_claim(*pod, volume);
      if (made) continue;
      recorder_.warning(*pod, "FailedBinding", "ephemeral volume " + std::string(volume.name()) + ": " + made.error().text());
      if (made.error().code() != Code::forbidden) return made.take_error().wrap("pod " + key.text());
      outcome.again = kForeignToldAgain;  // the claim of another: its end is an event
    }
    return outcome;
  }

 private:
  // Errors: forbidden if a claim of that name belongs to another owner.
  Result<void> make_claim(const Object& pod, view::Volume volume) {
    Key key{pod.ns(), volume::claim_name(pod.name(), volume.raw())};
    ObjectPtr there = claims_.get(key);
    if (!there) {
      auto created = client_.create(kPersistentVolumeClaim, claim_for(pod, volume));
      if (created) return {};
      if (created.error().code() != Code::already_exists)
        return Error(Code::unavailable, "create PVC " + key.name + ": " + created.error().text());
      there = TRY(client_.get(kPersistentVolumeClaim, key));
    }
    auto owner = there->controller();
    if (owner && owner->uid == pod.uid()) return {};
    return Error(Code::forbidden, "PVC " + key.text() + " was not created for pod " + pod.key().text() + " (pod is not owner)");
  }

  Client& client_;
  Informer& pods_;
  Informer& claims_;
  EventRecorder recorder_;
};

}  // namespace

std::unique_ptr<Controller> make_ephemeral_volumes(const Context& context) { return std::make_unique<EphemeralVolumes>(context); }

}  // namespace coracle::controller

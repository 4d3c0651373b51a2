// SPDX-License-Identifier: Apache-2.0
// Generic ephemeral volumes: creates a claim for each volume of a pod with a claim template. The pod owns the claim, which is
// deleted with it.
//   keys: {namespace, name} a pod
// Source: Kubernetes "Ephemeral Volumes", generic; pkg/controller/volume/ephemeral (semantics).
#include "daemon/controller/controller.h"
#include "daemon/controller/shared/common.h"
#include "daemon/volume/backing.h"
#include "runtime/base/text.h"

namespace coracle::controller {
namespace {

constexpr const char* kByClaim = "ephemeral-claim";

bool has_ephemeral_volume(const Object& pod) {
  for (view::Volume volume : view::Pod(pod).spec().volumes())
    if (volume.has_ephemeral()) return true;
  return false;
}

// The claim for one volume of the pod.
json::value claim_for(const Object& pod, const json::value& volume) {
  const json::value* made_as = find(volume, "ephemeral.volumeClaimTemplate");
  json::object metadata{{"name", volume::claim_name(pod.name(), volume)},
                        {"namespace", pod.ns()},
                        {"ownerReferences", json::array{controller_reference(pod)}}};
  for (const char* part : {"labels", "annotations"})
    if (const json::value* wanted = made_as ? find(*made_as, std::string("metadata.") + part) : nullptr) metadata[part] = *wanted;
  json::object claim{{"apiVersion", "v1"}, {"kind", "PersistentVolumeClaim"}, {"metadata", std::move(metadata)}};
  if (const json::value* spec = made_as ? find(*made_as, "spec") : nullptr) claim["spec"] = *spec;
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
      for (const json::value& volume : get_array(pod.json(), "spec.volumes"))
        if (find(volume, "ephemeral")) claims.push_back(Key{pod.ns(), volume::claim_name(pod.name(), volume)}.text());
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
    for (const json::value& volume : get_array(pod->json(), "spec.volumes"))
      if (find(volume, "ephemeral")) TRY(make_claim(*pod, volume));
    return Outcome{};
  }

 private:
  Result<void> make_claim(const Object& pod, const json::value& volume) {
    Key key{pod.ns(), volume::claim_name(pod.name(), volume)};
    ObjectPtr there = claims_.get(key);
    if (!there) {
      auto created = client_.create(kPersistentVolumeClaim, claim_for(pod, volume));
      if (created) return {};
      if (created.error().code() != Code::already_exists) {
        recorder_.warning(pod, "FailedCreate",
                          "ephemeral volume controller: create PVC " + key.text() + ": " + created.error().text());
        return created.take_error().wrap("create claim " + key.text());
      }
      there = TRY(client_.get(kPersistentVolumeClaim, key));
    }
    auto owner = there->controller();
    if (owner && owner->uid == pod.uid()) return {};
    std::string problem = "PVC " + quoted(key.name) + " was not created for the pod (pod is not owner)";
    recorder_.warning(pod, "FailedBinding", "ephemeral volume " + quoted(get_string(volume, "name")) + ": " + problem);
    return {};
  }

  Client& client_;
  Informer& pods_;
  Informer& claims_;
  EventRecorder recorder_;
};

}  // namespace

std::unique_ptr<Controller> make_ephemeral_volumes(const Context& context) { return std::make_unique<EphemeralVolumes>(context); }

}  // namespace coracle::controller

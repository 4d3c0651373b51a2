// SPDX-License-Identifier: Apache-2.0
// Storage protection: a claim that is deleted stays while a pod uses it, a volume while it is bound, a class of attributes
// while a claim or a volume names it; then the finalizer that admission gave them goes, and they with it.
// Source: Kubernetes pkg/controller/volume/{pvcprotection,pvprotection,vacprotection}.
#include <algorithm>

#include "daemon/controller/common.h"
#include "daemon/controller/controller.h"
#include "daemon/controller/garbage.h"
#include "daemon/volume/backing.h"

namespace coracle::controller {
namespace {

constexpr std::string_view kClaimFinalizer = "kubernetes.io/pvc-protection", kVolumeFinalizer = "kubernetes.io/pv-protection",
                           kClassFinalizer = "kubernetes.io/vac-protection";
constexpr std::string_view kVolumeKey = "volume/", kClassKey = "class/";  // no name of a claim holds a slash

bool uses_claim(const json::value& pod, const std::string& claim) {
  std::string_view name = get_string(pod, "metadata.name");
  return std::ranges::any_of(get_array(pod, "spec.volumes"),
                             [&](const json::value& volume) { return volume::claim_name(name, volume) == claim; });
}

bool names_class(const json::value& object, std::string_view name) {
  for (const char* path : {"spec.volumeAttributesClassName", "status.currentVolumeAttributesClassName",
                           "status.modifyVolumeStatus.targetVolumeAttributesClassName"})
    if (get_string(object, path) == name) return true;
  return false;
}

class StorageProtection : public Controller {
 public:
  explicit StorageProtection(const Context& context)
      : client_(context.client),
        claims_(context.informers.of(kPersistentVolumeClaim)),
        volumes_(context.informers.of(kPersistentVolume)),
        classes_(context.informers.of(kVolumeAttributesClass)),
        pods_(context.informers.of(kPod)) {}

  std::string_view name() const override { return "storageprotection"; }

  void subscribe(const LookAt& look_at) override {
    claims_.on_change([=, this](const Informer::Change& change) {
      if (change.after && change.after->deleting()) look_at.now(change.after->key());
      for (const ObjectPtr& one : classes_.list())
        if (one->deleting()) look_at.now({"", std::string(kClassKey) + one->name()});
    });
    volumes_.on_change([=, this](const Informer::Change& change) {
      if (change.after && change.after->deleting()) look_at.now({"", std::string(kVolumeKey) + change.after->name()});
      for (const ObjectPtr& one : classes_.list())
        if (one->deleting()) look_at.now({"", std::string(kClassKey) + one->name()});
    });
    classes_.on_change([=](const Informer::Change& change) {
      if (change.after && change.after->deleting()) look_at.now({"", std::string(kClassKey) + change.after->name()});
    });
    pods_.on_change([=, this](const Informer::Change& change) {
      bool over = !change.after || pod_finished(view::Pod(*change.after));
      if (!over) return;
      const json::value& pod = change.any().json();
      for (const json::value& volume : get_array(pod, "spec.volumes"))
        if (std::string name = volume::claim_name(change.any().name(), volume); !name.empty()) {
          ObjectPtr claim = claims_.get({change.any().ns(), name});
          if (claim && claim->deleting()) look_at.now(claim->key());
        }
    });
  }

  Result<Outcome> reconcile(const Key& key) override {
    if (key.name.starts_with(kVolumeKey))
      return release(volumes_.get({"", key.name.substr(kVolumeKey.size())}), kVolumeFinalizer,
                     [](const Object& volume) { return get_string(volume.json(), "status.phase") == "Bound"; });
    if (key.name.starts_with(kClassKey))
      return release(classes_.get({"", key.name.substr(kClassKey.size())}), kClassFinalizer, [&](const Object& one) {
        auto names = [&](const ObjectPtr& object) { return names_class(object->json(), one.name()); };
        auto claims = claims_.list(), volumes = volumes_.list();
        return std::any_of(claims.begin(), claims.end(), names) || std::any_of(volumes.begin(), volumes.end(), names);
      });
    return release(claims_.get(key), kClaimFinalizer, [&](const Object& claim) { return in_use(claim); });
  }

 private:
  // The store is asked, not a cache: what was just created must not lose what it is about to use.
  Result<bool> in_use(const Object& claim) {
    ObjectList pods = TRY(client_.list(kPod, {.ns = claim.ns()}));
    return std::any_of(pods.items.begin(), pods.items.end(), [&](const ObjectPtr& pod) {
      bool on_node = !view::Pod(*pod).spec().node_name().empty();  // a node starts no pod whose claim is being deleted
      return on_node && uses_claim(pod->json(), claim.name()) && !pod_finished(view::Pod(*pod));
    });
  }

  template <typename InUse>
  Result<Outcome> release(const ObjectPtr& object, std::string_view finalizer, InUse in_use) {
    if (!object || !object->deleting() || !has_finalizer(*object, finalizer)) return Outcome{};
    bool used = TRY(Result<bool>(in_use(*object)));
    if (used) return Outcome{};
    auto done = client_.patch(object->kind(), object->key(), PatchType::merge, without_finalizer_patch(*object, finalizer));
    if (!done && done.error().code() != Code::not_found) return done.take_error().wrap("release " + object->key().text());
    return Outcome{};
  }

  Client& client_;
  Informer& claims_;
  Informer& volumes_;
  Informer& classes_;
  Informer& pods_;
};

}  // namespace

std::unique_ptr<Controller> make_storage_protection(const Context& context) {
  return std::make_unique<StorageProtection>(context);
}

}  // namespace coracle::controller

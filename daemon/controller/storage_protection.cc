// SPDX-License-Identifier: Apache-2.0
// Storage protection: a claim that is deleted stays while a pod uses it, a volume while it is bound, a class of attributes
// while a claim or a volume names it; then the finalizer that admission gave them goes, and they with it.
// Source: Kubernetes pkg/controller/volume/{pvcprotection,pvprotection,vacprotection}.
#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "daemon/controller/common.h"
#include "daemon/controller/controller.h"
#include "daemon/controller/garbage.h"
#include "daemon/volume/backing.h"
#include "runtime/base/guarded.h"

namespace coracle::controller {
namespace {

constexpr std::string_view kClaimFinalizer = "kubernetes.io/pvc-protection", kVolumeFinalizer = "kubernetes.io/pv-protection",
                           kClassFinalizer = "kubernetes.io/vac-protection";
constexpr std::string_view kVolumeKey = "volume/", kClassKey = "class/";  // no name of a claim holds a slash

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
      bool has_claims = false;
      for (const json::value& volume : get_array(pod, "spec.volumes"))
        if (std::string name = volume::claim_name(change.any().name(), volume); !name.empty()) {
          // That the claim is being deleted may be heard later than this: the list of its users is old all the same.
          if (!std::exchange(has_claims, true))
            lists_.with([&](Lists& lists) { ++lists.ended, lists.by_ns.erase(change.any().ns()); });
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
  // The store is asked, not a cache: what was just created must not lose what it is about to use. A list is good for all claims
  // that were being deleted when it was made, until a pod that has one ends: no node starts another pod with them.
  Result<bool> in_use(const Object& claim) {
    auto [used, ended] = lists_.with([&](const Lists& lists) {
      auto found = lists.by_ns.find(claim.ns());
      bool knows = found != lists.by_ns.end() && found->second->revision >= claim.revision();
      return std::pair(knows ? found->second : nullptr, lists.ended);
    });
    if (used) return used->claims.contains(claim.name());
    ObjectList pods = TRY(client_.list(kPod, {.ns = claim.ns()}));
    used = used_by(pods);
    lists_.with([&](Lists& lists) {
      if (lists.ended != ended) return;
      if (lists.by_ns.size() == kListsMax) lists.by_ns.clear();
      lists.by_ns[claim.ns()] = used;
    });
    return used->claims.contains(claim.name());
  }

  struct Used {  // by pods of one namespace, as the store had them
    Revision revision = 0;
    std::set<std::string> claims;
  };
  struct Lists {
    std::map<std::string, std::shared_ptr<const Used>> by_ns;
    uint64_t ended = 0;  // pods with such claims: a list from before is not kept
  };
  static constexpr size_t kListsMax = 16;

  static std::shared_ptr<const Used> used_by(const ObjectList& pods) {
    auto out = std::make_shared<Used>();
    out->revision = pods.revision;
    for (const ObjectPtr& pod : pods.items) {
      view::Pod view(*pod);
      if (view.spec().node_name().empty() || pod_finished(view)) continue;  // a node starts no pod whose claim is being deleted
      for (const json::value& volume : get_array(pod->json(), "spec.volumes"))
        if (std::string name = volume::claim_name(pod->name(), volume); !name.empty()) out->claims.insert(std::move(name));
    }
    return out;
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
  Guarded<Lists> lists_;
};

}  // namespace

std::unique_ptr<Controller> make_storage_protection(const Context& context) {
  return std::make_unique<StorageProtection>(context);
}

}  // namespace coracle::controller

// SPDX-License-Identifier: Apache-2.0
// Storage protection: keeps a claim that is being deleted while a pod uses it, a volume while it is bound, and a
// VolumeAttributesClass while a claim or volume names it. Then it removes the finalizer that admission has added. A finalizer
// that was removed from an object that is not being deleted is added again. Source: Kubernetes
// pkg/controller/volume/{pvcprotection,pvprotection,vacprotection}.
#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "daemon/controller/controller.h"
#include "daemon/controller/garbage/garbage.h"
#include "daemon/controller/shared/common.h"
#include "daemon/volume/backing.h"
#include "runtime/base/guarded.h"

namespace coracle::controller {
namespace {

constexpr std::string_view kClaimFinalizer = "kubernetes.io/pvc-protection", kVolumeFinalizer = "kubernetes.io/pv-protection",
                           kClassFinalizer = "kubernetes.io/vac-protection";
constexpr std::string_view kVolumeKey = "volume/", kClassKey = "class/";  // names of claims contain no slash

// No node handles the pod any more: it was force-deleted, or its node has released it, and only finalizers keep it.
bool is_shut_down(view::Pod pod) {
  return !pod.metadata().deletion_timestamp().empty() && pod.metadata().has_deletion_grace_period_seconds() &&
         pod.metadata().deletion_grace_period_seconds() == 0;
}

bool claim_names_class(view::PersistentVolumeClaim claim, std::string_view name) {
  return claim.spec().volume_attributes_class_name() == name || claim.status().current_volume_attributes_class_name() == name ||
         claim.status().modify_volume_status().target_volume_attributes_class_name() == name;
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

  void subscribe(const Enqueue& enqueue) override {
    claims_.on_change([=, this](const Informer::Change& change) {
      if (change.after && is_concerned(*change.after, kClaimFinalizer)) enqueue.now(change.after->key());
      for (const ObjectPtr& one : classes_.list())
        if (one->deleting()) enqueue.now({"", std::string(kClassKey) + one->name()});
    });
    volumes_.on_change([=, this](const Informer::Change& change) {
      if (change.after && is_concerned(*change.after, kVolumeFinalizer))
        enqueue.now({"", std::string(kVolumeKey) + change.after->name()});
      for (const ObjectPtr& one : classes_.list())
        if (one->deleting()) enqueue.now({"", std::string(kClassKey) + one->name()});
    });
    classes_.on_change([=](const Informer::Change& change) {
      if (change.after && is_concerned(*change.after, kClassFinalizer))
        enqueue.now({"", std::string(kClassKey) + change.after->name()});
    });
    pods_.on_change([=, this](const Informer::Change& change) {
      bool over = !change.after || is_shut_down(view::Pod(*change.after));
      if (!over) return;
      bool has_claims = false;
      for (view::Volume volume : view::Pod(change.any()).spec().volumes())
        if (std::string name = volume::claim_name(change.any().name(), volume.raw()); !name.empty()) {
          // The event of the claim's deletion may arrive after this one, so the list of users is invalidated anyway.
          if (!std::exchange(has_claims, true))
            lists_.with([&](Lists& lists) { ++lists.ended, lists.by_ns.erase(change.any().ns()); });
          ObjectPtr claim = claims_.get({change.any().ns(), name});
          if (claim && claim->deleting()) enqueue.now(claim->key());
        }
    });
  }

  Result<Outcome> reconcile(const Key& key) override {
    if (key.name.starts_with(kVolumeKey))
      return release(volumes_.get({"", key.name.substr(kVolumeKey.size())}), kVolumeFinalizer,
                     [](const Object& volume) { return view::PersistentVolume(volume).status().phase() == "Bound"; });
    if (key.name.starts_with(kClassKey))
      return release(classes_.get({"", key.name.substr(kClassKey.size())}), kClassFinalizer, [&](const Object& one) {
        auto claims = claims_.list(), volumes = volumes_.list();
        return std::any_of(
                   claims.begin(), claims.end(),
                   [&](const ObjectPtr& claim) { return claim_names_class(view::PersistentVolumeClaim(*claim), one.name()); }) ||
               std::any_of(volumes.begin(), volumes.end(), [&](const ObjectPtr& volume) {
                 return view::PersistentVolume(*volume).spec().volume_attributes_class_name() == one.name();
               });
      });
    return release(claims_.get(key), kClaimFinalizer, [&](const Object& claim) { return in_use(claim); });
  }

 private:
  static bool is_concerned(const Object& object, std::string_view finalizer) {
    return object.deleting() || !has_finalizer(object, finalizer);
  }

  // Reads the store, not a cache, because a pod that was just created must not lose its claim. A list is valid for all claims
  // that were being deleted when it was made, until a pod with one of them ends: no node starts another pod with them.
  Result<bool> in_use(const Object& claim) {
    auto [used, ended] = lists_.with([&](const Lists& lists) {
      auto found = lists.by_ns.find(claim.ns());
      bool knows = found != lists.by_ns.end() && found->second->revision >= claim.revision();
      return std::pair(knows ? found->second : nullptr, lists.ended);
    });
    if (used) return used->has(claim);
    ObjectList pods = TRY(client_.list(kPod, {.ns = claim.ns()}));
    used = used_by(pods);
    lists_.with([&](Lists& lists) {
      if (lists.ended != ended) return;
      if (lists.by_ns.size() == kListsMax) lists.by_ns.clear();
      lists.by_ns[claim.ns()] = used;
    });
    return used->has(claim);
  }

  struct Used {  // used by pods of one namespace, from the store
    Revision revision = 0;
    std::set<std::string> claims;
    std::set<std::pair<std::string, std::string>> own;  // of ephemeral volumes, with the pod's uid
    bool has(const Object& claim) const {
      auto owner = claim.controller();
      return claims.contains(claim.name()) || (owner && own.contains({claim.name(), std::string(owner->uid)}));
    }
  };
  struct Lists {
    std::map<std::string, std::shared_ptr<const Used>> by_ns;
    uint64_t ended = 0;  // number of ended pods with such claims: an older list is discarded
  };
  static constexpr size_t kListsMax = 16;

  static std::shared_ptr<const Used> used_by(const ObjectList& pods) {
    auto out = std::make_shared<Used>();
    out->revision = pods.revision;
    for (const ObjectPtr& pod : pods.items) {
      view::Pod view(*pod);
      if (view.spec().node_name().empty()) continue;  // no node starts a pod whose claim is being deleted
      for (view::Volume volume : view.spec().volumes()) {
        std::string name = volume::claim_name(pod->name(), volume.raw());
        if (name.empty()) continue;
        if (!volume.has_ephemeral()) out->claims.insert(std::move(name));
        else if (!is_shut_down(view)) out->own.emplace(std::move(name), pod->uid());
      }
    }
    return out;
  }

  Result<Outcome> protect(const Object& object, std::string_view finalizer) {
    json::object metadata = precondition_metadata(object);
    json::array all = metadata_of(object).finalizers().raw();
    all.emplace_back(finalizer);
    metadata["finalizers"] = std::move(all);
    json::value patch = {{"metadata", std::move(metadata)}};
    auto done = client_.patch(object.kind(), object.key(), PatchType::merge, patch);
    if (!done && done.error().code() != Code::not_found) return done.take_error().wrap("protect " + object.key().text());
    return Outcome{};
  }

  template <typename InUse>
  Result<Outcome> release(const ObjectPtr& object, std::string_view finalizer, InUse in_use) {
    if (!object || object->deleting() != has_finalizer(*object, finalizer)) return Outcome{};
    if (!object->deleting()) return protect(*object, finalizer);
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

// SPDX-License-Identifier: Apache-2.0
// The pods of this node by uid: those bound to it in the API, and static pods. Two pods with the same name can exist at once (a
// terminating one and its successor), so the key is the uid. The informers and the manifest reader write the table; the workers
// read it. It stores compact RestingPtr objects; get() and the lists return them awake, as ObjectPtr.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "daemon/node/pod.h"
#include "runtime/base/guarded.h"
#include "store/object/object.h"

namespace coracle::node {

struct PodState {
  bool is_static = false;
  bool gone = false;          // deleted from the API or from the manifests
  bool stale_volumes = true;  // the content of its volumes may have changed
  bool admitted = false;
  bool released = false;                         // its volumes were given back
  bool lost_network = false;                     // its link is gone; it is to be attached again
  bool began_before = false;                     // this daemon: it has all of its volumes
  std::shared_ptr<std::set<std::string>> taken;  // claims that it has alone; null: none. Only the table looks at them
  std::shared_ptr<const References> references;  // of its volumes, which never change; null until somebody asks
  std::optional<bool> storage_limited;           // has_storage_limits, which do not change either
  std::shared_ptr<const std::string> refused;    // of a static pod: why none of its containers may start; null: they may
  // Of a static pod: its name, if an earlier daemon started it; null: this one did. If its file has changed, only its sandbox is
  // known.
  std::shared_ptr<const Key> adopted_as;
};

template <typename Pointer>
struct DesiredPodOf : PodState {
  Pointer object;  // the pod to run; null: only its sandbox is known
  Pointer mirror;  // of a static pod: its mirror pod in the API; null while there is none

  // The object in the API that holds the status. Null if there is none.
  const Pointer& api() const { return is_static ? mirror : object; }
  // The object of events. For a static pod it is the pod itself, even without a mirror: kubectl describe looks for events by that
  // uid, which the mirror has in an annotation.
  const Pointer& told() const { return object; }
};
using DesiredPod = DesiredPodOf<ObjectPtr>;
using RestingPod = DesiredPodOf<RestingPtr>;

class PodTable {
 public:
  std::optional<DesiredPod> get(const std::string& uid) const {
    return pods_.with([&](const auto& pods) -> std::optional<DesiredPod> {
      auto found = pods.find(uid);
      if (found == pods.end()) return std::nullopt;
      return awake(found->second);
    });
  }
  // Changes an entry and creates it if necessary. Calls `f` with the RestingPod.
  template <typename F>
  void change(const std::string& uid, F&& f) {
    pods_.with([&](auto& pods) { f(pods[uid]); });
  }
  template <typename F>
  void change_existing(const std::string& uid, F&& f) {
    pods_.with([&](auto& pods) {
      if (auto found = pods.find(uid); found != pods.end()) f(found->second);
    });
  }
  void erase(const std::string& uid) {
    pods_.with([&](auto& pods) { pods.erase(uid); });
  }
  std::vector<std::string> uids() const {
    return pods_.with([](const auto& pods) {
      std::vector<std::string> list;
      for (const auto& [uid, pod] : pods) list.push_back(uid);
      return list;
    });
  }
  // The pods that have storage limits or may have them. The others are not unpacked.
  std::map<std::string, DesiredPod> perhaps_limited() const {
    return pods_.with([](const auto& pods) {
      std::map<std::string, DesiredPod> found;
      for (const auto& [uid, pod] : pods)
        if (pod.object && pod.storage_limited != false) found.emplace(uid, awake(pod));
      return found;
    });
  }
  // The static pods of this name. A changed manifest is a new pod, and its predecessor (gone) may not have ended yet; one
  // that an earlier daemon started has no object.
  std::map<std::string, DesiredPod> static_pods_of(const Key& key) const {
    return pods_.with([&](const auto& pods) {
      std::map<std::string, DesiredPod> found;
      for (const auto& [uid, pod] : pods) {
        if (!pod.is_static) continue;
        bool same = pod.object ? pod.object->key() == KeyView(key) : pod.adopted_as && *pod.adopted_as == key;
        if (same) found.emplace(uid, awake(pod));
      }
      return found;
    });
  }
  // The pods beside `uid` that hold resources. A pod that is deleted from the API holds none, although it may still run: the
  // scheduler has already reassigned its resources.
  std::vector<ObjectPtr> admitted_beside(const std::string& uid) const {
    return pods_.with([&](const auto& pods) {
      std::vector<ObjectPtr> list;
      for (const auto& [other, resting] : pods) {
        if (other == uid || !resting.admitted || resting.gone || !resting.object) continue;
        DesiredPod pod = awake(resting);
        if (!ends_by_itself(pod.api() ? pod.api()->json() : pod.object->json())) list.push_back(std::move(pod.object));
      }
      return list;
    });
  }
  // Marks the pods whose volumes show this object and returns them, with those whose environment may refer to it.
  std::vector<std::string> mark_stale(const Kind& kind, const Key& key) {
    std::vector<std::string> list;
    std::vector<std::pair<std::string, RestingPtr>> others;  // searched outside the lock, because they may be large
    pods_.with([&](auto& pods) {
      for (auto& [uid, pod] : pods) {
        if (!pod.object || pod.object->ns() != key.ns) continue;
        const References& known = references_of(pod);
        const auto& names = kind == kConfigMap ? known.config_maps : kind == kSecret ? known.secrets : known.claims;
        bool shown = names.count(key.name) > 0;
        pod.stale_volumes |= shown;
        if (shown) list.push_back(uid);
        else others.emplace_back(uid, pod.object);
      }
    });
    for (auto& [uid, object] : others)  // a container that waits for an object in its environment is retried too
      if (object->mentions(key.name)) list.push_back(std::move(uid));
    return list;
  }

  // The pods with volumes of claims. The others are not unpacked.
  std::vector<ObjectPtr> with_claims() {
    return pods_.with([](auto& pods) {
      std::vector<ObjectPtr> list;
      for (auto& [uid, pod] : pods)
        if (pod.object && !references_of(pod).claims.empty()) list.push_back(pod.object->awake());
      return list;
    });
  }
  // The names of the pods that use the claim, until their volumes are released. The phase is not used: other clients may write it
  // while containers still run.
  std::vector<std::string> users_of_claim(const Key& claim) {
    return pods_.with([&](auto& pods) {
      std::vector<std::string> names;
      for (auto& [uid, pod] : pods)
        if (uses(pod, claim)) names.emplace_back(pod.object ? std::string(pod.object->name()) : uid);
      return names;
    });
  }
  // Whether one of the users may belong to an earlier claim of the same name: a pod that is deleted from the API, or has ended
  // according to it.
  bool is_used_by_gone(const Key& claim) {
    return pods_.with([&](auto& pods) {
      return std::any_of(pods.begin(), pods.end(), [&](auto& entry) {
        RestingPod& pod = entry.second;
        return uses(pod, claim) && (pod.gone || !pod.object || ends_by_itself(pod.object->awake()->json()));
      });
    });
  }
  // Gives a claim to one pod alone. False: another one has it, until its volumes were given back.
  bool take_alone(const std::string& uid, const Key& claim) {
    return pods_.with([&](auto& pods) {
      auto has = [&](const RestingPod& pod) { return pod.began_before || (pod.taken && pod.taken->contains(claim.name)); };
      auto own = pods.find(uid);
      if (own == pods.end() || has(own->second)) return own != pods.end();
      for (auto& [other, pod] : pods)
        if (other != uid && has(pod) && uses(pod, claim)) return false;
      if (!own->second.taken) own->second.taken = std::make_shared<std::set<std::string>>();
      own->second.taken->insert(claim.name);
      return true;
    });
  }

 private:
  static bool uses(RestingPod& pod, const Key& claim) {
    if (pod.released) return false;
    if (!pod.object) return true;  // only its sandbox is known, from an earlier daemon: it may use any claim
    return pod.object->ns() == claim.ns && references_of(pod).claims.count(claim.name) > 0;
  }
  static const References& references_of(RestingPod& pod) {
    if (!pod.references) pod.references = std::make_shared<const References>(volume_references(pod.object->awake()->json()));
    return *pod.references;
  }
  static DesiredPod awake(const RestingPod& pod) {
    auto wake = [](const RestingPtr& object) { return object ? object->awake() : nullptr; };
    return {pod, wake(pod.object), wake(pod.mirror)};
  }
  Guarded<std::map<std::string, RestingPod>> pods_;
};

}  // namespace coracle::node

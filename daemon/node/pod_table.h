// SPDX-License-Identifier: Apache-2.0
// The pods this node is to run, by uid: those the API binds to it and those its manifests name. Two pods of one name can
// be here at once (one ending, one new); their uids tell them apart. Informers and the manifest reader write it, the
// workers read it. The objects in it are at rest; get() and the lists hand them out awake.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/node/pod.h"
#include "runtime/base/guarded.h"
#include "store/object/object.h"

namespace coracle::node {

struct PodState {
  bool is_static = false;
  bool gone = false;          // from the API, or from the manifests
  bool stale_volumes = true;  // what its volumes show may have changed
  bool admitted = false;
  bool released = false;                         // its volumes were given back
  bool lost_network = false;                     // its link is gone; it is to be attached again
  std::shared_ptr<const References> references;  // of its volumes, which never change; null until somebody asks
  std::optional<bool> storage_limited;           // has_storage_limits, which do not change either
};

template <typename Pointer>
struct DesiredPodOf : PodState {
  Pointer object;  // what is to run; null: only a sandbox is known of it
  Pointer mirror;  // of a static pod: how the API shows it; null while it does not

  // The object in the API, where status goes. Null: there is none.
  const Pointer& api() const { return is_static ? mirror : object; }
  // What events are about: of a static pod itself, whether or not the API shows it yet. kubectl describe asks for them by its
  // uid, which its mirror has in an annotation.
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
  // Changes an entry, made when it is not there. `f` gets the RestingPod.
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
  // The pods that have storage limits, or of which that is not known yet. The others are not woken.
  std::map<std::string, DesiredPod> perhaps_limited() const {
    return pods_.with([](const auto& pods) {
      std::map<std::string, DesiredPod> found;
      for (const auto& [uid, pod] : pods)
        if (pod.object && pod.storage_limited != false) found.emplace(uid, awake(pod));
      return found;
    });
  }
  // The static pods of this name: a changed manifest is a new pod, whose predecessor (gone) may not have ended yet.
  std::map<std::string, DesiredPod> static_pods_of(const Key& key) const {
    return pods_.with([&](const auto& pods) {
      std::map<std::string, DesiredPod> found;
      for (const auto& [uid, pod] : pods)
        if (pod.is_static && pod.object->key() == KeyView(key)) found.emplace(uid, awake(pod));
      return found;
    });
  }
  // The pods that hold resources beside `uid`. One that the API has forgotten holds none, though it may not have ended yet: the
  // scheduler has given away its place already.
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
  // Marks and names the pods whose volumes or environment may show this object.
  std::vector<std::string> mark_stale(const Kind& kind, const Key& key) {
    return pods_.with([&](auto& pods) {
      std::vector<std::string> list;
      for (auto& [uid, pod] : pods) {
        if (!pod.object || pod.object->ns() != key.ns) continue;
        const References& known = references_of(pod);
        const auto& names = kind == kConfigMap ? known.config_maps : kind == kSecret ? known.secrets : known.claims;
        bool shown = names.count(key.name) > 0;
        pod.stale_volumes |= shown;
        // A container that waits for a reference of its environment looks again, too.
        if (shown || pod.object->mentions(key.name)) list.push_back(uid);
      }
      return list;
    });
  }

  // The pods that have volumes of claims, for a look at these: the others are not woken.
  std::vector<ObjectPtr> with_claims() {
    return pods_.with([](auto& pods) {
      std::vector<ObjectPtr> list;
      for (auto& [uid, pod] : pods)
        if (pod.object && !references_of(pod).claims.empty()) list.push_back(pod.object->awake());
      return list;
    });
  }
  // The names of the pods that use the claim, until their volumes were given back. Their phase says nothing of that: others may
  // write it while containers still run.
  std::vector<std::string> users_of_claim(const Key& claim) {
    return pods_.with([&](auto& pods) {
      std::vector<std::string> names;
      for (auto& [uid, pod] : pods)
        if (uses(pod, claim)) names.emplace_back(pod.object ? std::string(pod.object->name()) : uid);
      return names;
    });
  }
  // Whether one of them may have known a claim of that name that is gone as well: the API does not know it any more, or takes it
  // for ended.
  bool is_used_by_gone(const Key& claim) {
    return pods_.with([&](auto& pods) {
      return std::any_of(pods.begin(), pods.end(), [&](auto& entry) {
        RestingPod& pod = entry.second;
        return uses(pod, claim) && (pod.gone || !pod.object || ends_by_itself(pod.object->awake()->json()));
      });
    });
  }

 private:
  static bool uses(RestingPod& pod, const Key& claim) {
    if (pod.released) return false;
    if (!pod.object) return true;  // only its sandbox is known, from before this daemon: it may use any
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

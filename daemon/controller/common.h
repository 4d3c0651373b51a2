// SPDX-License-Identifier: Apache-2.0
// What several controllers need: owner references, how ready a pod is, conditions, status writes that are none when
// nothing changed, and the memory of one's own writes. Pure unless it takes a Client.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/informer/informer.h"
#include "runtime/base/clock.h"
#include "runtime/base/guarded.h"
#include "store/client/client.h"
#include "store/object/finalizers.h"
#include "store/object/share.h"
#include "store/schema/views.h"

namespace coracle::controller {

// An ownerReferences entry with controller and blockOwnerDeletion set.
json::value controller_reference(const Object& owner);
// `uid`'s entry is taken out; nothing when it is not among them.
std::optional<json::array> without_owner(const Object& object, std::string_view uid);
// Index "controller": an object's controller's uid, or "orphan/<namespace>" when it has none.
void index_by_controller(Informer& informer);
std::vector<ObjectPtr> controlled_by(const Informer& informer, const Object& owner);
std::vector<ObjectPtr> orphans(const Informer& informer, std::string_view ns);

// Index "node": the name of the node that a pod is bound to.
void index_by_node(Informer& pods);

// Whom a set owns among what is there: adopts matching orphans, lets go of what matches no more. `belongs`: what has to hold
// beside the selector. What is adopted gets the `finalizer`, what is let go loses it. Source: client-go controller ref manager
// (semantics).
Result<std::vector<ObjectPtr>> claim(Client& client, const Informer& informer, const Object& owner, const json::value* selector,
                                     bool active_only, const std::function<bool(const Object&)>& belongs = {},
                                     std::string_view finalizer = {});

bool pod_finished(view::Pod pod);    // Succeeded or Failed
bool pod_active(const Object& pod);  // neither finished nor being deleted
std::optional<view::PodCondition> pod_condition(view::Pod pod, std::string_view type);
bool pod_ready(view::Pod pod);
// When a ready pod becomes available: ready for `min_ready`. Nothing when it is not ready.
std::optional<WallTime> pod_available_at(view::Pod pod, std::chrono::seconds min_ready);
bool pod_available(view::Pod pod, std::chrono::seconds min_ready, WallTime now);

struct Condition {
  std::string type, status, reason, message;
};
const json::value* find_condition(const json::array& conditions, std::string_view type);
// Keeps lastTransitionTime while the status stays. `with_update_time`: lastUpdateTime too (Deployment).
void set_condition(json::array& conditions, const Condition& condition, WallTime now, bool with_update_time = false);
void drop_condition(json::array& conditions, std::string_view type);
// Of a status; left out where it is 0.
void set_count(json::object& status, std::string_view name, int64_t count);

// The object with another status goes to its status subresource, unless it is equal: then null. Errors: conflict when the
// object given is not the newest.
Result<ObjectPtr> update_status(Client& client, const Object& object, json::value status);
Result<void> write_status(Client& client, const Object& object, json::value status);  // for whom it is the last word

// The object at a dotted path, made when it is not there.
json::object& object_at(json::value& root, std::string_view dotted);

// The end of a name that stands for a text: short, in the alphabet of Kubernetes' generated names. `collisions`: how many names
// for this text were taken by others.
std::string name_hash(std::string_view text, int64_t collisions);

// A controller's own writes that its cache does not show yet. Counting again before it does would create or delete
// twice.
class OwnWrites {
 public:
  explicit OwnWrites(const Clock& clock) : clock_(clock) {}
  void wrote(const Key& key, Revision revision);
  void removed(const Key& key, const std::string& uid);
  // The cache shows what was written for this key. After kPatience the writes are given up: an event was lost.
  bool shown(const Key& key, const Informer& cache);
  // The uids of what we have removed though the cache still shows it; forgets what it shows no more.
  std::set<std::string> removed_among(const Key& key, const std::vector<ObjectPtr>& cached);
  // `cached` without these.
  std::vector<ObjectPtr> without_removed(const Key& key, std::vector<ObjectPtr> cached);
  void forget(const Key& key);

  static constexpr std::chrono::seconds kPatience{30};
  static constexpr std::chrono::seconds kLookAgain{1};

 private:
  struct Entry {
    Revision revision = 0;
    SteadyTime since{};
    std::set<std::string> removed;
  };
  const Clock& clock_;
  Guarded<std::map<Key, Entry>> entries_;
};

}  // namespace coracle::controller

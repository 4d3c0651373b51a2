// SPDX-License-Identifier: Apache-2.0
// Functions shared by controllers: owner references, readiness of pods, conditions, status updates that skip unchanged status,
// and tracking of a controller's own writes. Pure, except functions that take a Client.
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
#include "store/kinds/meta/conditions.h"
#include "store/kinds/meta/metadata.h"
#include "store/kinds/pod/pod_state.h"
#include "store/object/finalizers.h"
#include "store/object/selector.h"
#include "store/object/selector_index.h"
#include "store/object/share.h"
#include "store/schema/views.h"

namespace coracle::controller {

// An ownerReferences entry with controller and blockOwnerDeletion set.
json::value controller_reference(const Object& owner);
// The ownerReferences without the entry of `uid`; nullopt if there is no such entry.
std::optional<json::array> without_owner(const Object& object, std::string_view uid);
// Index "controller": the uid of an object's controller, or "orphan/<namespace>" if it has none.
void index_by_controller(Informer& informer);
std::vector<ObjectPtr> controlled_by(const Informer& informer, const Object& owner);
std::vector<ObjectPtr> orphans(const Informer& informer, std::string_view ns);

// Keeps `selectors` in line with the owners. Call before the informer starts, and before handlers that ask `selectors` are added.
void follow(Informer& owners, SelectorIndex& selectors);

// Index "node": the name of the node that a pod is bound to.
void index_by_node(Informer& pods);

// The objects that `owner` controls: adopts matching orphans and releases objects that no longer match. `belongs` is a further
// condition beside the selector. Adopted objects get the `finalizer`, released ones lose it. Errors: invalid if `selector` is
// null (the owner's cannot be read); the Client's. Source: client-go controller ref manager (semantics).
Result<std::vector<ObjectPtr>> claim(Client& client, const Informer& informer, const Object& owner, const LabelSelector* selector,
                                     bool active_only, const std::function<bool(const Object&)>& belongs = {},
                                     std::string_view finalizer = {});

bool pod_active(const Object& pod);  // neither finished nor being deleted
// When a ready pod becomes available: it must be ready for `min_ready`. nullopt if it is not ready.
std::optional<WallTime> pod_available_at(view::Pod pod, std::chrono::seconds min_ready);
bool pod_available(view::Pod pod, std::chrono::seconds min_ready, WallTime now);

struct Condition {
  std::string type, status, reason, message;
};
// Sets a condition; lastTransitionTime is kept if its status is unchanged. `with_update_time`: sets lastUpdateTime too
// (Deployment).
void set_condition(json::array& conditions, const Condition& condition, WallTime now, bool with_update_time = false);
void drop_condition(json::array& conditions, std::string_view type);
// Sets a count in a status; removes it if it is 0.
void set_count(json::object& status, std::string_view name, int64_t count);

// Updates the status subresource and returns the new object; returns null without a request if nothing changes. `annotations`:
// what to set of them too, for a kind whose status updates take them. Errors: conflict if the given object is not the newest.
Result<ObjectPtr> update_status(Client& client, const Object& object, json::value status, const json::object& annotations = {});
// The same, if the new object is not needed.
Result<void> write_status(Client& client, const Object& object, json::value status, const json::object& annotations = {});

// A short suffix for a generated name, a hash of `text` in the alphabet of Kubernetes' generated names. `collisions`: the number
// of earlier names for this text that were taken by other objects.
std::string name_hash(std::string_view text, int64_t collisions);

// Expectations: a controller's own writes that its cache does not contain yet. Without them, a sync with an old cache would
// create or delete objects twice.
class OwnWrites {
 public:
  explicit OwnWrites(const Clock& clock) : clock_(clock) {}
  void wrote(const Key& key, Revision revision);
  void removed(const Key& key, const std::string& uid);
  // Whether the cache contains the writes for this key. After kTimeout the expectations expire, because an event may have been
  // lost.
  bool shown(const Key& key, const Informer& cache);
  // The uids of removed objects that the cache still contains. Forgets the others.
  std::set<std::string> removed_among(const Key& key, const std::vector<ObjectPtr>& cached);
  // `cached` without these objects.
  std::vector<ObjectPtr> without_removed(const Key& key, std::vector<ObjectPtr> cached);
  void forget(const Key& key);

  static constexpr std::chrono::seconds kTimeout{30};
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

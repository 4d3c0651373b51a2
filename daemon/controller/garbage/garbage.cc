// SPDX-License-Identifier: Apache-2.0
// Garbage collector: deletes objects without a remaining owner, waits in foreground deletion for the dependents, and orphans
// dependents. Every kind's cache is indexed by owner uid, so an event costs only what it concerns.
//   an object with owners appears or changes ──▶ its key: do its owners exist?
//   an object is deleted, or loses an owner ──▶ the keys of its dependents, and of those owners (they may wait for it)
//   an object is being deleted with our finalizer ──▶ its key: delete its dependents first, or orphan them
// A key contains the kind too. Caches may be late, so before an owner is finally deleted, its dependents are read from the store.
// Source: see garbage.h.
#include "daemon/controller/garbage/garbage.h"

#include <algorithm>
#include <map>
#include <set>

#include "daemon/controller/controller.h"
#include "daemon/controller/shared/common.h"
#include "daemon/event/recorder.h"
#include "runtime/base/text.h"
#include "store/schema/catalog.h"

namespace coracle::controller {

OwnedPlan plan_owned(const Object& object, const std::vector<OwnerReference>& owners, const std::vector<OwnerState>& states,
                     bool has_dependents) {
  OwnedPlan plan;
  bool present = false, waiting = false;
  for (size_t i = 0; i < owners.size(); ++i) {
    if (states[i] == OwnerState::present) present = true;
    else plan.drop.push_back(owners[i].uid);
    waiting |= states[i] == OwnerState::waiting;
  }
  if (plan.drop.empty()) return plan;
  if (present) {
    plan.what = OwnedPlan::What::drop_references;
    return plan;
  }
  plan.what = OwnedPlan::What::remove;
  if (waiting && has_dependents) plan.propagation = "Foreground";
  else if (has_finalizer(object, kOrphan)) plan.propagation = "Orphan";
  else if (has_finalizer(object, kForeground)) plan.propagation = "Foreground";
  else plan.propagation = "Background";
  return plan;
}

namespace {

constexpr std::string_view kByOwner = "owner";
constexpr int64_t kListPage = 500;  // objects per list request

class GarbageCollector : public Controller {
 public:
  explicit GarbageCollector(const Context& context)
      : client_(context.client), catalogs_(context.catalogs), recorder_(context.events, "garbage-collector-controller") {
    const schema::CatalogPtr catalog = catalogs_.now();
    for (const schema::KindInfo& info : catalog->kinds()) {
      bool kept = info.is_stored() && info.has_verb("list") && info.has_verb("watch") && info.has_verb("delete");
      if (!kept || info.traits.no_owners) continue;
      kinds_.emplace(info.kind.qualified_resource(), Held{&info.kind, &context.informers.of(info.kind)});
    }
  }

  std::string_view name() const override { return "garbage"; }

  void subscribe(const Enqueue& enqueue) override {
    for (auto& [resource, held] : kinds_) {
      held.cache->add_index(std::string(kByOwner), [](const Object& object) {
        std::vector<std::string> uids;
        if (!mentions_owners(object)) return uids;
        for (OwnerReference& owner : object.owners()) uids.push_back(std::move(owner.uid));
        return uids;
      });
      held.cache->on_change([=, this](const Informer::Change& change) { on_change(change, enqueue); });
    }
  }

  Result<Outcome> reconcile(const Key& key) override {
    auto held = kinds_.find(key.ns.substr(0, key.ns.find('/')));
    if (held == kinds_.end()) return Outcome{};
    ObjectPtr object = held->second.cache->get({key.ns.substr(key.ns.find('/') + 1), key.name});
    if (!object) return Outcome{};
    if (object->deleting()) {
      if (has_finalizer(*object, kOrphan)) {
        TRY(cut_loose(*object));
      } else if (has_finalizer(*object, kForeground)) {
        TRY(remove_dependents_first(*object));
      }
      return Outcome{};
    }
    if (!mentions_owners(*object)) return Outcome{};
    TRY(check_owners(*object));
    return Outcome{};
  }

 private:
  struct Held {
    const Kind* kind;
    Informer* cache;
  };

  // A text search without parsing, because most objects have no owner.
  static bool mentions_owners(const Object& object) { return object.mentions("ownerReferences"); }
  static Key key_of(const Object& object) { return {object.kind().qualified_resource() + "/" + object.ns(), object.name()}; }

  void on_change(const Informer::Change& change, const Enqueue& enqueue) const {
    const Object& object = change.any();
    if (!change.after) {
      for (const ObjectPtr& dependent : dependents(object.uid())) enqueue.now(key_of(*dependent));
    }
    const bool owned = mentions_owners(object);
    if (change.after && (owned || (object.mentions("finalizers") && object.deleting()))) enqueue.now(key_of(object));
    if (owned && (!change.after || object.deleting()))
      for (const OwnerReference& owner : object.owners()) enqueue_owner(object, owner, enqueue);
    if (change.before && change.after && owners_text(*change.before) != owners_text(*change.after))
      for (const OwnerReference& owner : change.before->owners()) enqueue_owner(object, owner, enqueue);
  }

  // The references in the object's text: most changes do not touch them, and then nothing must be parsed.
  static std::string_view owners_text(const Object& object) {
    if (!mentions_owners(object)) return {};  // a faster search
    std::string_view text = object.text();
    size_t begin = text.find("\"ownerReferences\":[");
    if (begin == text.npos) return {};
    return text.substr(begin, text.find(']', begin) - begin);
  }

  // Enqueues an owner that is being deleted, because it may wait for this object.
  void enqueue_owner(const Object& object, const OwnerReference& reference, const Enqueue& enqueue) const {
    const Held* held = held_for(reference);
    if (!held) return;
    ObjectPtr owner = held->cache->get({held->kind->namespaced ? object.ns() : "", reference.name});
    if (owner && owner->deleting()) enqueue.now(key_of(*owner));
  }

  const Held* held_for(const OwnerReference& reference) const {
    const schema::CatalogPtr catalog = catalogs_.now();
    const schema::KindInfo* info = catalog->by_kind(reference.api_version, reference.kind);
    auto held = info ? kinds_.find(info->kind.qualified_resource()) : kinds_.end();
    return held == kinds_.end() ? nullptr : &held->second;
  }

  std::vector<ObjectPtr> dependents(const std::string& uid) const {
    std::vector<ObjectPtr> all;
    for (const auto& [resource, held] : kinds_)
      for (ObjectPtr& dependent : held.cache->by_index(kByOwner, uid)) all.push_back(std::move(dependent));
    return all;
  }

  // The dependents in the store, complete as of now. Errors: the Client's.
  Result<std::vector<ObjectPtr>> stored_dependents(const Object& owner) {
    std::vector<ObjectPtr> all;
    for (const auto& [resource, held] : kinds_) {
      if (!owner.ns().empty() && !held.kind->namespaced) continue;  // a namespaced owner has no cluster-scoped dependents
      ListOptions options{.ns = owner.ns(), .limit = kListPage};
      do {
        ObjectList page = TRY(client_.list(*held.kind, options));
        for (ObjectPtr& object : page.items)
          if (mentions_owners(*object) && object->mentions(owner.uid()) && references(*object, owner.uid()))
            all.push_back(std::move(object));
        options.continue_token = page.continue_token;
      } while (!options.continue_token.empty());
    }
    return all;
  }

  static bool references(const Object& object, const std::string& uid) {
    std::vector<OwnerReference> owners = object.owners();
    return std::any_of(owners.begin(), owners.end(), [&](const OwnerReference& owner) { return owner.uid == uid; });
  }

  // ---- owned objects ----

  // The uids of all objects of a kind, for evaluating the references of one object. They are collected only from the second
  // lookup on, because usually there is one.
  struct KnownUids {
    bool was_asked = false;
    std::set<std::string> uids;
  };
  using Uids = std::map<const Held*, KnownUids>;

  // The caches of different kinds are not consistent with each other, so the store is asked before an owner counts as absent.
  Result<OwnerState> state_of(const Object& object, const OwnerReference& reference, Uids& known) {
    const Held* held = held_for(reference);
    if (!held) return OwnerState::present;  // a kind that is not served: not decided here
    if (held->kind->namespaced && object.ns().empty()) {
      tell_wrong_namespace(object, reference);
      return OwnerState::present;  // such an owner is impossible, so its existence is not decided here
    }
    Key key{held->kind->namespaced ? object.ns() : "", reference.name};
    ObjectPtr owner = held->cache->get(key);
    if (!owner || owner->uid() != reference.uid) {
      auto live = client_.get(*held->kind, key);
      if (!live && live.error().code() != Code::not_found) return live.take_error();
      if (!live || (*live)->uid() != reference.uid) {
        if (held->kind->namespaced && lives_elsewhere(*held, reference.uid, known)) tell_wrong_namespace(object, reference);
        return OwnerState::absent;
      }
      owner = *live;
    }
    return owner->deleting() && has_finalizer(*owner, kForeground) ? OwnerState::waiting : OwnerState::present;
  }

  // Owners must be in the same namespace or cluster-scoped.
  void tell_wrong_namespace(const Object& object, const OwnerReference& reference) const {
    recorder_.warning(object, "OwnerRefInvalidNamespace",
                      "ownerRef [" + reference.api_version + "/" + reference.kind + ", namespace: " + object.ns() + ", name: " +
                          reference.name + ", uid: " + reference.uid + "] does not exist in namespace " + quoted(object.ns()));
  }

  static bool lives_elsewhere(const Held& held, const std::string& uid, Uids& known) {
    KnownUids& all = known[&held];
    const std::vector<ObjectPtr> list = all.uids.empty() ? held.cache->list() : std::vector<ObjectPtr>();
    if (!std::exchange(all.was_asked, true))
      return std::ranges::any_of(list, [&](const ObjectPtr& other) { return other->uid() == uid; });
    for (const ObjectPtr& other : list) all.uids.insert(other->uid());
    return all.uids.contains(uid);
  }

  // Owners in a cycle would wait for each other forever: the object that closes it does not block its owners.
  Result<void> break_circle(const Object& object) {
    std::vector<ObjectPtr> owned = dependents(object.uid());
    bool closes = std::any_of(owned.begin(), owned.end(), [](const ObjectPtr& dependent) {
      return dependent->deleting() && has_finalizer(*dependent, kForeground);
    });
    if (!closes) return {};
    json::array unblocked = metadata_of(object).owner_references().raw();
    for (json::value& reference : unblocked) make(reference, "blockOwnerDeletion") = false;
    json::value patch = {{"metadata", {{"uid", object.uid()}, {"ownerReferences", std::move(unblocked)}}}};
    return ignore_gone(client_.patch(object.kind(), object.key(), PatchType::merge, patch), "unblock owners of " + object.name());
  }

  Result<void> check_owners(const Object& object) {
    std::vector<OwnerReference> owners = object.owners();
    std::vector<OwnerState> states;
    Uids known;
    for (const OwnerReference& owner : owners) {
      OwnerState state = TRY(state_of(object, owner, known));
      states.push_back(state);
    }
    OwnedPlan plan = plan_owned(object, owners, states, !dependents(object.uid()).empty());
    switch (plan.what) {
      case OwnedPlan::What::nothing: return {};
      case OwnedPlan::What::drop_references: return drop_references(object, plan.drop);
      case OwnedPlan::What::remove:
        if (plan.propagation == "Foreground") TRY(break_circle(object));
        return remove(object, plan.propagation);
    }
    return {};
  }

  Result<void> drop_references(const Object& object, const std::vector<std::string>& uids) {
    const std::set<std::string_view> dropped(uids.begin(), uids.end());
    json::array kept;
    for (view::OwnerReference reference : metadata_of(object).owner_references())
      if (!dropped.contains(reference.uid())) kept.push_back(reference.raw());
    json::object metadata = precondition_metadata(object);
    metadata["ownerReferences"] = std::move(kept);
    json::value patch = {{"metadata", std::move(metadata)}};
    return ignore_gone(client_.patch(object.kind(), object.key(), PatchType::merge, patch), "drop owner of " + object.name());
  }

  // With the observed uid and resourceVersion as preconditions: the object may have been orphaned or have got another owner, and
  // the cache may be late.
  Result<void> remove(const Object& object, std::string_view propagation) {
    auto removed = client_.remove(object.kind(), object.key(),
                                  {.uid = object.uid(), .revision = object.revision(), .propagation = std::string(propagation)});
    if (removed || removed.error().code() == Code::not_found) return {};
    return removed.take_error().wrap("remove ownerless " + object.key().text());
  }

  // ---- owners that are being deleted ----

  Result<void> cut_loose(const Object& owner) {
    std::vector<ObjectPtr> owned = TRY(stored_dependents(owner));
    for (const ObjectPtr& dependent : owned) TRY(drop_references(*dependent, {owner.uid()}));
    return finish(owner, kOrphan);
  }

  static bool blocks(const Object& dependent, const Object& owner) {
    std::vector<OwnerReference> owners = dependent.owners();
    return std::any_of(owners.begin(), owners.end(), [&](const OwnerReference& reference) {
      return reference.uid == owner.uid() && reference.block_owner_deletion;
    });
  }

  Result<void> remove_dependents_first(const Object& owner) {
    bool blocked = false;
    for (const ObjectPtr& dependent : dependents(owner.uid())) {
      blocked |= blocks(*dependent, owner);
      if (dependent->deleting()) continue;
      TRY(check_owners(*dependent));
    }
    if (blocked) return {};  // the deletion or orphaning of the last dependent enqueues this object again
    std::vector<ObjectPtr> owned = TRY(stored_dependents(owner));
    for (const ObjectPtr& dependent : owned)
      if (blocks(*dependent, owner)) return {};  // the cache will contain it, and its deletion will enqueue this object
    return finish(owner, kForeground);
  }

  Result<void> finish(const Object& owner, std::string_view finalizer) {
    return ignore_gone(client_.patch(owner.kind(), owner.key(), PatchType::merge, without_finalizer_patch(owner, finalizer)),
                       "finish deletion of " + owner.name());
  }

  static Result<void> ignore_gone(Result<ObjectPtr> written, const std::string& doing) {
    if (written || written.error().code() == Code::not_found) return {};
    return written.take_error().wrap(doing);
  }

  Client& client_;
  const schema::CatalogSource& catalogs_;
  EventRecorder recorder_;
  std::map<std::string, Held, std::less<>> kinds_;  // by qualified resource
};

}  // namespace

std::unique_ptr<Controller> make_garbage_collector(const Context& context) { return std::make_unique<GarbageCollector>(context); }

}  // namespace coracle::controller

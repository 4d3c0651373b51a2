// SPDX-License-Identifier: Apache-2.0
// See common.h.
#include "daemon/controller/shared/common.h"

#include <algorithm>
#include <utility>

#include "runtime/base/text.h"

namespace coracle::controller {

json::value controller_reference(const Object& owner) {
  return {{"apiVersion", owner.kind().api_version()},
          {"kind", owner.kind().kind},
          {"name", owner.name()},
          {"uid", owner.uid()},
          {"controller", true},
          {"blockOwnerDeletion", true}};
}

std::optional<json::array> without_owner(const Object& object, std::string_view uid) {
  json::array kept;
  bool found = false;
  for (view::OwnerReference reference : metadata_of(object).owner_references()) {
    if (reference.uid() == uid) found = true;
    else kept.push_back(reference.raw());
  }
  if (!found) return std::nullopt;
  return kept;
}

void index_by_controller(Informer& informer) {
  informer.add_index("controller", [](const Object& object) -> std::vector<std::string> {
    auto owner = object.controller();
    return {owner ? owner->uid : "orphan/" + object.ns()};
  });
}

std::vector<ObjectPtr> controlled_by(const Informer& informer, const Object& owner) {
  return informer.by_index("controller", owner.uid());
}

std::vector<ObjectPtr> orphans(const Informer& informer, std::string_view ns) {
  return informer.by_index("controller", "orphan/" + std::string(ns));
}

void follow(Informer& owners, SelectorIndex& selectors) {
  owners.on_change([&selectors](const Informer::Change& change) {
    if (change.after) selectors.put(*change.after);
    else selectors.remove(change.before->key());
  });
}

void index_by_node(Informer& pods) {
  pods.add_index("node",
                 [](const Object& pod) { return std::vector<std::string>{std::string(view::Pod(pod).spec().node_name())}; });
}

namespace {

json::value owners_patch(const Object& object, json::array owners, std::optional<json::array> finalizers) {
  json::object metadata = precondition_metadata(object);
  metadata["ownerReferences"] = std::move(owners);
  if (finalizers) metadata["finalizers"] = std::move(*finalizers);
  return {{"metadata", std::move(metadata)}};
}

Result<ObjectPtr> adopt(Client& client, const Object& owner, const Object& orphan, std::string_view finalizer) {
  json::array owners = metadata_of(orphan).owner_references().raw();
  owners.push_back(controller_reference(owner));
  std::optional<json::array> finalizers;
  if (!finalizer.empty() && !has_finalizer(orphan, finalizer)) {
    finalizers = metadata_of(orphan).finalizers().raw();
    finalizers->emplace_back(finalizer);
  }
  return client.patch(orphan.kind(), orphan.key(), PatchType::merge,
                      owners_patch(orphan, std::move(owners), std::move(finalizers)));
}

Result<void> release(Client& client, const Object& owner, const Object& object, std::string_view finalizer) {
  auto owners = without_owner(object, owner.uid());
  if (!owners) return {};
  std::optional<json::array> finalizers;
  if (!finalizer.empty() && has_finalizer(object, finalizer)) {
    finalizers.emplace();
    for (std::string_view each : metadata_of(object).finalizers())
      if (each != finalizer) finalizers->emplace_back(each);
  }
  auto done = client.patch(object.kind(), object.key(), PatchType::merge,
                           owners_patch(object, std::move(*owners), std::move(finalizers)));
  if (!done && done.error().code() != Code::not_found) return done.take_error().wrap("release " + object.name());
  return {};
}

// An error if the owner is being deleted or was replaced, because then it must not adopt. The sync is retried when the cache
// shows that; until then no replacements are created for objects that may be its own already.
Result<void> check_may_adopt(Client& client, const Object& owner) {
  ObjectPtr live = TRY(client.get(owner.kind(), owner.key()));
  if (live->uid() == owner.uid() && !live->deleting()) return {};
  return Error(Code::conflict, std::string(owner.kind().kind) + " " + owner.key().text() + " has just been deleted");
}

}  // namespace

Result<std::vector<ObjectPtr>> claim(Client& client, const Informer& informer, const Object& owner, const LabelSelector* selector,
                                     bool active_only, const std::function<bool(const Object&)>& belongs,
                                     std::string_view finalizer) {
  if (!selector) return Error(Code::invalid, "the selector of " + owner.name() + " cannot be read");
  auto matches = [&](const Object& object) { return selector->matches(object) && (!belongs || belongs(object)); };
  std::vector<ObjectPtr> claimed;
  for (ObjectPtr& object : controlled_by(informer, owner)) {
    if (active_only && !pod_active(*object)) continue;
    if (matches(*object)) {
      claimed.push_back(std::move(object));
    } else if (!owner.deleting()) {
      TRY(release(client, owner, *object, finalizer));
    }
  }
  if (owner.deleting()) return claimed;
  bool checked = false;
  for (const ObjectPtr& object : orphans(informer, owner.ns())) {
    if (object->deleting() || !matches(*object) || (active_only && !pod_active(*object))) continue;
    if (!std::exchange(checked, true)) TRY(check_may_adopt(client, owner));
    auto adopted = adopt(client, owner, *object, finalizer);
    if (adopted) claimed.push_back(std::move(*adopted));
    else if (adopted.error().code() != Code::not_found) return adopted.take_error().wrap("adopt " + object->name());
  }
  return claimed;
}

bool pod_active(const Object& pod) { return !pod.deleting() && !is_terminal(view::Pod(pod)); }

std::optional<WallTime> pod_available_at(view::Pod pod, std::chrono::seconds min_ready) {
  auto ready = pod_condition(pod, "Ready");
  if (!ready || ready->status() != "True") return std::nullopt;
  if (min_ready == min_ready.zero()) return WallTime{};
  auto since = parse_time(ready->last_transition_time());
  if (!since) return std::nullopt;
  return *since + min_ready;
}

bool pod_available(view::Pod pod, std::chrono::seconds min_ready, WallTime now) {
  auto at = pod_available_at(pod, min_ready);
  return at && *at <= now;
}

void set_condition(json::array& conditions, const Condition& condition, WallTime now, bool with_update_time) {
  std::string time = format_time(now);
  json::object fresh{{"type", condition.type},
                     {"status", condition.status},
                     {"lastTransitionTime", time},
                     {"reason", condition.reason},
                     {"message", condition.message}};
  if (with_update_time) fresh["lastUpdateTime"] = time;
  view::Condition before(find_condition(conditions, condition.type));
  if (before.status() == condition.status && before.has_last_transition_time())
    fresh["lastTransitionTime"] = before.last_transition_time();
  make_condition(conditions, condition.type) = std::move(fresh);
}

void drop_condition(json::array& conditions, std::string_view type) {
  if (const json::value* present = find_condition(conditions, type)) conditions.erase(present);
}

void set_count(json::object& status, std::string_view name, int64_t count) {
  if (count == 0) status.erase(name);
  else status[name] = count;
}

Result<ObjectPtr> update_status(Client& client, const Object& object, json::value status, const json::object& annotations) {
  const json::object& whole = object.json().get_object();
  const json::value* present = whole.if_contains("status");
  const bool same = present ? same_json(*present, status) : status.is_null();
  auto is_set = [&](const auto& one) {
    return one.value().is_string() && object.annotation(one.key()) == one.value().get_string();
  };
  if (same && std::ranges::all_of(annotations, is_set)) return ObjectPtr();
  json::value body = json::object();  // without the spec, which a status update does not change and which may have megabytes
  for (std::string_view name : {"apiVersion", "kind", "metadata"})
    if (const json::value* value = whole.if_contains(name)) body.get_object()[name] = *value;
  for (const auto& [key, value] : annotations) make_object(body, "metadata.annotations")[key] = value;
  body.get_object()["status"] = std::move(status);
  return client.update(object.kind(), body, {.subresource = "status"}).wrap("write status");
}

Result<void> write_status(Client& client, const Object& object, json::value status, const json::object& annotations) {
  TRY(update_status(client, object, std::move(status), annotations));
  return {};
}

std::string name_hash(std::string_view text, int64_t collisions) {
  constexpr std::string_view kAlphabet = "bcdfghjklmnpqrstvwxz2456789";  // without vowels and ambiguous characters
  std::string hashed(text);
  if (collisions) hashed += std::to_string(collisions);
  std::string name;
  for (char digit : std::to_string(fnv1a(hashed))) name += kAlphabet[size_t(uint8_t(digit)) % kAlphabet.size()];
  return name;
}

void OwnWrites::wrote(const Key& key, Revision revision) {
  entries_.with([&](auto& entries) {
    Entry& entry = entries[key];
    entry.revision = std::max(entry.revision, revision);
    entry.since = clock_.steady();
  });
}

void OwnWrites::removed(const Key& key, const std::string& uid) {
  entries_.with([&](auto& entries) {
    Entry& entry = entries[key];
    entry.removed.insert(uid);
    entry.since = clock_.steady();
  });
}

bool OwnWrites::shown(const Key& key, const Informer& cache) {
  Revision reached = cache.revision();
  return entries_.with([&](auto& entries) {
    auto found = entries.find(key);
    if (found == entries.end()) return true;
    Entry& entry = found->second;
    if (clock_.steady() - entry.since > kTimeout) entry = {};
    if (reached < entry.revision) return false;
    if (entry.removed.empty()) entries.erase(found);
    return true;
  });
}

std::set<std::string> OwnWrites::removed_among(const Key& key, const std::vector<ObjectPtr>& cached) {
  return entries_.with([&](auto& entries) {
    std::set<std::string> still_shown;
    auto found = entries.find(key);
    if (found == entries.end()) return still_shown;
    for (const ObjectPtr& object : cached)
      if (found->second.removed.contains(object->uid())) still_shown.insert(object->uid());
    found->second.removed = still_shown;
    return still_shown;
  });
}

std::vector<ObjectPtr> OwnWrites::without_removed(const Key& key, std::vector<ObjectPtr> cached) {
  std::set<std::string> removed = removed_among(key, cached);
  std::erase_if(cached, [&](const ObjectPtr& object) { return removed.contains(object->uid()); });
  return cached;
}

void OwnWrites::forget(const Key& key) {
  entries_.with([&](auto& entries) { entries.erase(key); });
}

}  // namespace coracle::controller

// SPDX-License-Identifier: Apache-2.0
// Plan. See plan.h.
#include "store/engine/plan.h"

#include <algorithm>

#include "store/object/status.h"

namespace coracle::engine {
namespace {

constexpr size_t kDeletionGrowthMax = 64u << 10;  // bytes, per write

size_t size_of(const ObjectPtr& object) { return object ? object->text().size() + kObjectOverhead : 0; }

// Whether the write makes an object too large. One that is too large already may stay so. The write that removes a finalizer adds
// an entry to managedFields: without room for that the object could never be deleted.
bool is_too_large(const Prepared& write, const ObjectPtr& now) {
  const size_t before = size_of(now), after = size_of(write.body);
  if (after <= kObjectBytesMax || after <= before || write.beyond_limit) return false;
  return !(write.is_being_deleted && after - before <= kDeletionGrowthMax);
}

}  // namespace

Result<Prepared> Prepared::make(Write write) {
  if (!write.body)
    return Prepared{write.kind,         std::move(write.key),  nullptr, json::value(), write.expected,
                    write.beyond_limit, std::move(write.amend)};
  coracle::make(*write.body, "metadata.resourceVersion") = "0";
  Prepared prepared{write.kind,     std::move(write.key), nullptr, json::value(*std::move(write.body)),
                    write.expected, write.beyond_limit,   nullptr};
  prepared.body = TRY(Object::make(*write.kind, prepared.parsed));
  prepared.sheds_managed_fields = write.sheds_managed_fields;
  if (size_of(prepared.body) > kObjectBytesMax)
    prepared.is_being_deleted = find(prepared.parsed, "metadata.deletionTimestamp") != nullptr;
  if (prepared.body->key() != prepared.key)
    return Error(Code::invalid, "the body is named " + prepared.body->key().text() + ", not " + prepared.key.text());
  return prepared;
}

Result<void> Prepared::drop_managed_fields() {
  json::value slim = parsed.is_null() ? body->json() : std::move(parsed);  // null: an earlier plan has taken it
  json::object& metadata = coracle::make(slim, "metadata").get_object();
  if (auto at = metadata.find("managedFields"); at != metadata.end()) {
    metadata.stable_erase(at);
    body = TRY(Object::make(*kind, slim));
  }
  parsed = std::move(slim);
  return {};
}

Plan::Entry Plan::latest(const Kind& kind, const Key& key) const {
  auto found = planned_.find({kind.group, kind.resource, key});
  return found != planned_.end() ? found->second : find_(kind, key);
}

Result<std::vector<ObjectPtr>> Plan::add(std::vector<Prepared>& group) {
  Mark before{changes_.size(), last_, next_row_, space_.usage.bytes};
  replaced_.clear();
  std::vector<ObjectPtr> stored;
  for (Prepared& write : group) {
    auto decided = decide(write);
    if (!decided) {
      roll_back(before);
      return decided.take_error();
    }
    stored.push_back(*std::move(decided));
  }
  return stored;
}

void Plan::put(const Prepared& write, Entry next) {
  Name name{write.kind->group, write.kind->resource, write.key};
  auto found = planned_.find(name);
  replaced_.emplace_back(name, found == planned_.end() ? std::nullopt : std::optional(found->second));
  planned_[std::move(name)] = std::move(next);
}

void Plan::roll_back(const Mark& mark) {
  changes_.resize(mark.changes);
  last_ = mark.last;
  next_row_ = mark.next_row;
  space_.usage.bytes = mark.bytes;
  for (auto last = replaced_.rbegin(); last != replaced_.rend(); ++last) {
    if (last->second) planned_[last->first] = *std::move(last->second);
    else planned_.erase(last->first);
  }
}

// An object that is too large, or that the store has no space for. The latter with etcd's error text, which users search for, and
// advice. Source: etcd rpctypes, ErrGRPCNoSpace.
Result<void> Plan::take_space(const Prepared& write, const Entry& now) {
  Usage& usage = space_.usage;
  size_t before = size_of(now.object), after = size_of(write.body);
  size_t total = usage.bytes - std::min(usage.bytes, before) + after;
  if (is_too_large(write, now.object))
    return Error(Code::too_large, "Request entity too large: limit is " + std::to_string(kObjectBytesMax) +
                                      "; with its defaults and managedFields the object takes " + std::to_string(after) +
                                      " bytes");
  if (after > before && total > usage.bytes_max && usage.bytes_max != 0 && !write.beyond_limit) {
    space_.refused = true;
    return storage_error("etcdserver: mvcc: database space exceeded: all objects together may take " +
                         std::to_string(usage.bytes_max >> 20) +
                         " MiB; delete what is not needed, or raise storeMaxSize in the settings");
  }
  usage.bytes = total;
  return {};
}

Result<ObjectPtr> Plan::decide(Prepared& write) {
  Entry now = latest(*write.kind, write.key);
  if (!write.amend) return decide(write, now);
  if (!now.object) return not_found(*write.kind, write.key.name);
  std::optional<json::value> body = TRY(write.amend(*now.object));
  if (!body) return now.object;
  Prepared amended = TRY(Prepared::make({write.kind, write.key, std::move(body), write.expected, write.beyond_limit}));
  return decide(amended, now);
}

Result<ObjectPtr> Plan::decide(Prepared& write, const Entry& now) {
  if (!now.object && (!write.body || write.expected.value_or(0) != 0)) return not_found(*write.kind, write.key.name);
  if (now.object && write.expected == Revision(0)) return already_exists(*write.kind, write.key.name);
  if (now.object && write.expected && *write.expected != now.object->revision())
    return stale_conflict(*write.kind, write.key.name);
  if (write.sheds_managed_fields && is_too_large(write, now.object)) TRY(write.drop_managed_fields());
  if (write.body && now.object && write.body->same_as(*now.object)) return now.object;

  TRY(take_space(write, now));
  Revision revision = ++last_;
  Entry next;
  Event event{EventType::deleted, revision, nullptr, now.object};
  if (write.body) {
    next.object = write.body->with_revision(revision, std::move(write.parsed), now.object.get());
    next.row = now.object ? now.row : next_row_++;
    event.type = now.object ? EventType::modified : EventType::added;
    event.object = next.object;
  } else {
    event.object = now.object->with_revision(revision);
  }
  changes_.push_back({event, now.object ? now.row : next.row});
  put(write, std::move(next));
  return event.object;
}

}  // namespace coracle::engine

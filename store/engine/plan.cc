// SPDX-License-Identifier: Apache-2.0
// Plan. See plan.h.
#include "store/engine/plan.h"

#include <algorithm>

#include "store/object/status.h"

namespace coracle::engine {

Result<Prepared> Prepared::make(Write write) {
  if (!write.body) return Prepared{write.kind, std::move(write.key), nullptr, json::value(), write.expected, write.beyond_limit};
  coracle::make(*write.body, "metadata.resourceVersion") = "0";
  Prepared prepared{write.kind,     std::move(write.key), nullptr, json::value(*std::move(write.body)),
                    write.expected, write.beyond_limit};
  prepared.body = TRY(Object::make(*write.kind, prepared.parsed));
  if (prepared.body->key() != prepared.key)
    return Error(Code::invalid, "the body is named " + prepared.body->key().text() + ", not " + prepared.key.text());
  return prepared;
}

Plan::Entry Plan::latest(const Kind& kind, const Key& key) const {
  auto found = planned_.find({kind.group, kind.resource, key});
  return found != planned_.end() ? found->second : find_(kind, key);
}

Result<std::vector<ObjectPtr>> Plan::add(std::vector<Prepared>& group) {
  auto changes = changes_.size();
  auto last = last_;
  auto next_row = next_row_;
  auto used = space_.usage.bytes;
  auto planned = group.size() > 1 ? planned_ : decltype(planned_)();  // a single write fails before any change
  std::vector<ObjectPtr> stored;
  for (Prepared& write : group) {
    auto decided = decide(write);
    if (!decided) {
      if (group.size() > 1) planned_ = std::move(planned);
      changes_.resize(changes);
      last_ = last;
      next_row_ = next_row;
      space_.usage.bytes = used;
      return decided.take_error();
    }
    stored.push_back(*std::move(decided));
  }
  return stored;
}

// Uses etcd's error text, which users search for, and adds advice. Source: etcd rpctypes, ErrGRPCNoSpace.
Result<void> Plan::take_space(const Prepared& write, const Entry& now) {
  auto size_of = [](const ObjectPtr& object) { return object ? object->text().size() + kObjectOverhead : 0; };
  Usage& usage = space_.usage;
  size_t before = size_of(now.object), after = size_of(write.body);
  size_t total = usage.bytes - std::min(usage.bytes, before) + after;
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
  if (!now.object && (!write.body || write.expected.value_or(0) != 0)) return not_found(*write.kind, write.key.name);
  if (now.object && write.expected == Revision(0)) return already_exists(*write.kind, write.key.name);
  if (now.object && write.expected && *write.expected != now.object->revision())
    return stale_conflict(*write.kind, write.key.name);
  if (write.body && now.object && write.body->same_as(*now.object)) return now.object;

  TRY(take_space(write, now));
  Revision revision = ++last_;
  Entry next;
  Event event{EventType::deleted, revision, nullptr, now.object};
  if (write.body) {
    next.object = write.body->with_revision(revision, std::move(write.parsed));
    next.row = now.object ? now.row : next_row_++;
    event.type = now.object ? EventType::modified : EventType::added;
    event.object = next.object;
  } else {
    event.object = now.object->with_revision(revision);
  }
  changes_.push_back({event, now.object ? now.row : next.row});
  planned_[{write.kind->group, write.kind->resource, write.key}] = next;
  return event.object;
}

}  // namespace coracle::engine

// SPDX-License-Identifier: Apache-2.0
// Memory. See memory.h.
#include "store/engine/memory.h"

#include <iterator>

#include "store/engine/engine.h"

namespace coracle::engine {

const Memory::Table* Memory::table(const Kind& kind) const {
  auto found = tables_.find({kind.group, kind.resource});
  return found == tables_.end() ? nullptr : &found->second;
}

const Memory::Entry* Memory::find(const Kind& kind, KeyView key) const {
  const Table* objects = table(kind);
  if (!objects) return nullptr;
  auto found = objects->find(key);
  return found == objects->end() ? nullptr : &*found;
}

size_t Memory::count(const Kind& kind) const {
  const Table* objects = table(kind);
  return objects ? objects->size() : 0;
}

std::vector<RestingPtr> Memory::objects(const Kind& kind, std::string_view ns) const {
  std::vector<RestingPtr> found;
  const Table* all = table(kind);
  if (!all) return found;
  if (ns.empty()) found.reserve(all->size());
  for (auto at = ns.empty() ? all->begin() : all->lower_bound(KeyView(ns, "")); at != all->end(); ++at) {
    if (!ns.empty() && at->object->ns() != ns) break;
    found.push_back(at->object);
  }
  return found;
}

std::vector<RestingPtr> Memory::all() const {
  std::vector<RestingPtr> found;
  for (const auto& [name, objects] : tables_)
    for (const Entry& entry : objects) found.push_back(entry.object);
  return found;
}

std::map<int64_t, RestingPtr> Memory::rows() const {
  std::map<int64_t, RestingPtr> found;
  for (const auto& [name, objects] : tables_)
    for (const Entry& entry : objects) found.emplace(entry.row, entry.object);
  return found;
}

void Memory::put(Table& table, Entry entry) {
  bytes_ += entry.object->text_size() + kObjectOverhead;
  auto place = table.lower_bound(entry);
  if (place == table.end() || place->object->key() != entry.object->key()) {
    table.insert(place, std::move(entry));
    return;
  }
  bytes_ -= place->object->text_size() + kObjectOverhead;
  auto next = std::next(place);
  auto node = table.extract(place);  // the node must be reinserted with the new object
  node.value() = std::move(entry);
  table.insert(next, std::move(node));
}

Memory::Table& Memory::table_for(const Kind& kind) {
  const sys::SlabAllocator<Entry> beside(RestingObject::pool(kind));  // in the same pool as its objects
  return tables_.try_emplace({kind.group, kind.resource}, beside).first->second;
}

void Memory::load(Entry entry) {
  const Kind& kind = entry.object->kind();
  put(table_for(kind), std::move(entry));
}

void Memory::apply(const Change& change) {
  const Object& object = *change.event.object;
  Table& objects = table_for(object.kind());
  if (change.event.type != EventType::deleted) {
    put(objects, {change.event.object->at_rest(), change.row});
  } else if (auto gone = objects.find(object.key()); gone != objects.end()) {
    bytes_ -= gone->object->text_size() + kObjectOverhead;
    objects.erase(gone);
  }
  revision = change.event.revision;
  window.append(change.event);
}

}  // namespace coracle::engine

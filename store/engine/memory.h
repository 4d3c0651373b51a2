// SPDX-License-Identifier: Apache-2.0
// Memory: the latest state and the recent events, guarded by the engine's lock. Reads copy pointers out.
#pragma once

#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/sys/slab_pool.h"
#include "store/engine/window.h"
#include "store/object/object.h"

namespace coracle::engine {

// A decided change, to be written to the disk, applied to memory and published.
struct Change {
  Event event;
  int64_t row = 0;
  RestingPtr kept() const { return event.type == EventType::deleted ? nullptr : event.object->at_rest(); }  // in its row
};

class Memory {
 public:
  struct Entry {
    RestingPtr object;
    int64_t row = 0;  // on the disk
  };
  Memory(size_t events_max, size_t bytes_max) : window(events_max, bytes_max) {}

  const Entry* find(const Kind& kind, KeyView key) const;
  size_t count(const Kind& kind) const;
  std::vector<RestingPtr> objects(const Kind& kind, std::string_view ns) const;  // "": all; sorted

  std::vector<RestingPtr> all() const;
  std::map<int64_t, RestingPtr> rows() const;
  size_t bytes() const { return bytes_; }  // of all objects: texts, and kObjectOverhead each

  void load(Entry entry);
  void apply(const Change& change);

  Window window;
  Revision revision = 0;

 private:
  struct ByKey {
    using is_transparent = void;
    static KeyView key(const Entry& entry) { return entry.object->key(); }
    static KeyView key(KeyView key) { return key; }
    bool operator()(const auto& a, const auto& b) const { return key(a) < key(b); }
  };
  using Table = std::set<Entry, ByKey, sys::SlabAllocator<Entry>>;  // the key is in the object: no second copy
  using Name = std::pair<std::string_view, std::string_view>;       // group and resource of a Kind
  const Table* table(const Kind& kind) const;
  Table& table_for(const Kind& kind);  // creates it if it is missing
  void put(Table& table, Entry entry);
  std::map<Name, Table> tables_;
  size_t bytes_ = 0;
};

}  // namespace coracle::engine

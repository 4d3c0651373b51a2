// SPDX-License-Identifier: Apache-2.0
// DefinitionNames: the names that CustomResourceDefinitions have been accepted with, so that a group's resources and kinds are
// unique. What a write accepts is reserved until its commit is over, so no lock is held while the disk is written.
//   engine ── watch ──▶ names of each definition, counted by group ──▶ TakenByOthers ─▶ choose ▸ reserve ─▶ commit
// It has a watch on the engine, from the first write of a definition on, and processes its events on each query. So a write reads
// no other definition, and no acknowledged one is missing. Names that are reserved for a write that fails afterwards were taken
// for others meanwhile. Thread-safe.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "store/engine/engine.h"
#include "store/kinds/strategy.h"

namespace coracle::kinds {

class DefinitionNames {
 public:
  struct Names {  // accepted, of one definition
    std::string group;
    std::set<std::string> resources, kinds;  // plural, singular and short names; kind and list kind
    static Names of(const json::value& definition);
  };
  // The names of all definitions of a group but one. Valid during the call of `choose`.
  class TakenByOthers {
   public:
    bool has_resource(std::string_view name) const;
    bool has_kind(std::string_view name) const;

   private:
    friend class DefinitionNames;
    using Counts = std::map<std::string, size_t, std::less<>>;  // by name: how many definitions have it
    struct Group {
      Counts resources, kinds;
    };
    const Group* group_ = nullptr;  // null: there are none
    Group own_;                     // of the excluded definition: what it has, and what is reserved for it
  };

  // `engine` and this must outlive all reservations.
  explicit DefinitionNames(engine::Engine& engine) : engine_(engine) {}
  // Lets `choose` set the accepted names of `definition`, with the lock held: it must not block. Returns the reservation of the
  // names that it then has; null if `is_kept` is false. Errors: those of the engine's watch; then nothing is reserved.
  using Choose = std::function<void(const TakenByOthers& others)>;
  Result<std::unique_ptr<Hold>> reserve(const json::value& definition, bool is_kept, const Choose& choose);

 private:
  class Reservation;
  using Held = std::multimap<std::string, Names, std::less<>>::iterator;  // by the definition's name
  Result<void> refresh();
  void put(const Object& definition, bool gone);
  void release(std::string_view name);
  void add(const Names& names);
  void take(const Names& names);  // which were added

  engine::Engine& engine_;
  std::mutex mutex_;
  // Guarded by mutex_:
  std::unique_ptr<engine::Watcher> watcher_;                         // null: not started, or it fell too far behind
  std::map<std::string, Names, std::less<>> accepted_;               // by the definition's name
  std::multimap<std::string, Names, std::less<>> held_;              // likewise
  std::map<std::string, TakenByOthers::Group, std::less<>> counts_;  // of both, by group
};

}  // namespace coracle::kinds

// SPDX-License-Identifier: Apache-2.0
// ServiceIndex: the addresses and node ports that Services have. It has a watch on the engine and processes its events on each
// query. So a write of one Service reads no other Service, and the index includes every acknowledged write.
//   engine ── watch ──▶ addresses and ports, with the number of Services of each ──▶ ServiceIndex::AllocatedByOthers
// Not thread-safe: writes of Services are serialized.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "store/engine/engine.h"

namespace coracle::kinds {

class ServiceIndex {
 public:
  using Port = std::pair<int64_t, std::string>;  // node port and protocol
  struct Allocated {                             // of one Service
    std::set<uint32_t> addresses;
    std::set<Port> ports;
  };

  // The allocations of all Services but one. Valid until the next query.
  class AllocatedByOthers {
   public:
    bool has(uint32_t address) const;
    bool has(const Port& port) const;
    // The lowest free address from `first` to `last`.
    std::optional<uint32_t> free_address(uint32_t first, uint32_t last) const;

   private:
    friend class ServiceIndex;
    AllocatedByOthers(const ServiceIndex& index, const Allocated* own) : index_(index), own_(own) {}
    const ServiceIndex& index_;
    const Allocated* own_;  // of the excluded Service; null if it has none
  };

  explicit ServiceIndex(engine::Engine& engine) : engine_(engine) {}
  // Errors: those of the engine's watch; nothing may be allocated then.
  Result<AllocatedByOthers> allocated_by_others(std::string_view uid);

 private:
  Result<void> refresh();
  void put(const Object& service, bool gone);
  void release(const std::string& uid);

  engine::Engine& engine_;
  std::unique_ptr<engine::Watcher> watcher_;                 // null: not started, or it fell too far behind
  std::map<std::string, Allocated, std::less<>> allocated_;  // by uid
  std::map<uint32_t, size_t> addresses_;
  std::map<Port, size_t> ports_;
};

}  // namespace coracle::kinds

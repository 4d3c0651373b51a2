// SPDX-License-Identifier: Apache-2.0
// ServiceIndex: which addresses and node ports Services have. It follows the engine by a watch of its own that is emptied when
// somebody asks, so a write of one Service looks at no other, and never trails behind one that was acknowledged.
//   engine ── watch ──▶ addresses and ports, with how many Services have each ──▶ ServiceIndex::AllocatedByOthers
// Not thread-safe: writes of Services go one at a time.
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

namespace coracle::registry {

class ServiceIndex {
 public:
  using Port = std::pair<int64_t, std::string>;  // node port and protocol
  struct Allocated {                             // what one Service has
    std::set<uint32_t> addresses;
    std::set<Port> ports;
  };

  // What all Services have but one. Good until somebody asks again.
  class AllocatedByOthers {
   public:
    bool has(uint32_t address) const;
    bool has(const Port& port) const;
    // The lowest address from `first` to `last` that none of them has.
    std::optional<uint32_t> free_address(uint32_t first, uint32_t last) const;

   private:
    friend class ServiceIndex;
    AllocatedByOthers(const ServiceIndex& index, const Allocated* own) : index_(index), own_(own) {}
    const ServiceIndex& index_;
    const Allocated* own_;  // of the one; null when it has nothing
  };

  explicit ServiceIndex(engine::Engine& engine) : engine_(engine) {}
  // Errors: those of the engine's watch; nothing may be given out then.
  Result<AllocatedByOthers> allocated_by_others(std::string_view uid);

 private:
  Result<void> refresh();
  void put(const Object& service, bool gone);
  void release(const std::string& uid);

  engine::Engine& engine_;
  std::unique_ptr<engine::Watcher> watcher_;                 // null: not begun, or it fell too far behind
  std::map<std::string, Allocated, std::less<>> allocated_;  // by uid
  std::map<uint32_t, size_t> addresses_;
  std::map<Port, size_t> ports_;
};

}  // namespace coracle::registry

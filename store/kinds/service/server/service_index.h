// SPDX-License-Identifier: Apache-2.0
// ServiceIndex: the addresses and node ports that Services have. It has a watch on the engine and processes its events on each
// query. So a write of one Service reads no other Service, and the index includes every acknowledged write.
// Reservations count as well, so that what a write is about to commit is given to nobody else.
//   engine ── watch ──▶ addresses and ports, with the number of Services of each ──▶ ServiceIndex::AllocatedByOthers
//   ServiceAddresses ── hold, give_back ──┘
// Not thread-safe: ServiceAddresses has the lock.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "store/engine/engine.h"
#include "store/kinds/service/server/number_runs.h"

namespace coracle::kinds {

class ServiceIndex {
 public:
  struct Allocated {  // of one Service
    std::set<uint32_t> addresses;
    std::set<int64_t> ports;  // a node port belongs to one Service, with all its protocols
    static Allocated of(const json::value& service);
  };
  struct Counts {  // how many Services have it
    std::map<uint32_t, size_t> addresses;
    std::map<int64_t, size_t> ports;
    NumberRuns taken_addresses;  // those of `addresses`
    NumberRuns taken_ports;      // those of `ports`
    void add(const Allocated& allocated);
    void take(const Allocated& allocated);  // which was added
  };

  // The allocations of all Services but one. Valid until the next call.
  class AllocatedByOthers {
   public:
    bool has_address(uint32_t address) const;
    bool has_port(int64_t port) const;
    // The lowest free address from `first` to `last`.
    std::optional<uint32_t> free_address(uint32_t first, uint32_t last) const;
    // The lowest free node port from `first` to `last`. Like free_address, it takes no longer where many are taken.
    std::optional<int64_t> free_port(int64_t first, int64_t last) const;

   private:
    friend class ServiceIndex;
    explicit AllocatedByOthers(const ServiceIndex& index) : index_(index) {}
    const ServiceIndex& index_;
    Counts own_;  // of the excluded Service: what it has, and what is reserved for it
  };
  using Held = std::multimap<std::string, Allocated, std::less<>>::iterator;  // by uid

  explicit ServiceIndex(engine::Engine& engine) : engine_(engine) {}
  // Errors: those of the engine's watch; nothing may be allocated then.
  Result<AllocatedByOthers> allocated_by_others(std::string_view uid);
  // Reserves this for the Service, beside what it has.
  Held hold(std::string_view uid, Allocated allocated);
  void give_back(Held held);

 private:
  Result<void> refresh();
  void put(const Object& service, bool gone);
  void release(const std::string& uid);

  engine::Engine& engine_;
  std::unique_ptr<engine::Watcher> watcher_;                 // null: not started, or it fell too far behind
  std::map<std::string, Allocated, std::less<>> allocated_;  // by uid
  std::multimap<std::string, Allocated, std::less<>> held_;  // by uid
  Counts counts_;                                            // of both
};

}  // namespace coracle::kinds

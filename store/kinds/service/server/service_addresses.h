// SPDX-License-Identifier: Apache-2.0
// ServiceAddresses: gives addresses and node ports to Services. What a write has chosen is reserved until its commit is over, so
// no lock is held while the disk is written, and Services are created at once.
//   lock ▸ choose among what no other has ▸ reserve ▸ unlock ─▶ validate ▸ commit ─▶ the Hold is destroyed: what was committed
//   stands in the index, the rest is free again
// While a write is pending, its values are taken for all others, also if it fails afterwards, as in Kubernetes. Thread-safe.
#pragma once

#include <memory>
#include <mutex>

#include "store/kinds/service/server/service_index.h"
#include "store/kinds/strategy.h"

namespace coracle::kinds {

class ServiceAddresses {
 public:
  // `engine` and this must outlive all reservations.
  explicit ServiceAddresses(engine::Engine& engine) : index_(engine) {}
  // Lets `choose` set the addresses and ports of `service`, with the lock held: it must not block. Returns the reservation of
  // what the Service then has; null if `is_kept` is false. Errors: those of `choose`, and of the engine's watch; then nothing is
  // reserved.
  using Choose = std::function<Result<void>(const ServiceIndex::AllocatedByOthers& others)>;
  Result<std::unique_ptr<Hold>> reserve(const json::value& service, bool is_kept, const Choose& choose);

 private:
  class Reservation;
  std::mutex mutex_;
  ServiceIndex index_;  // guarded by mutex_
};

}  // namespace coracle::kinds

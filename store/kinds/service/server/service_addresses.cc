// SPDX-License-Identifier: Apache-2.0
// See service_addresses.h.
#include "store/kinds/service/server/service_addresses.h"

#include "store/schema/views.h"

namespace coracle::kinds {

class ServiceAddresses::Reservation : public Hold {
 public:
  Reservation(ServiceAddresses& owner, ServiceIndex::Held held) : owner_(owner), held_(held) {}
  ~Reservation() override {
    std::lock_guard lock(owner_.mutex_);
    owner_.index_.give_back(held_);
  }

 private:
  ServiceAddresses& owner_;
  ServiceIndex::Held held_;
};

Result<std::unique_ptr<Hold>> ServiceAddresses::reserve(const json::value& service, bool is_kept, const Choose& choose) {
  std::string uid(view::Service(service).metadata().uid());
  std::lock_guard lock(mutex_);
  {
    const ServiceIndex::AllocatedByOthers others = TRY(index_.allocated_by_others(uid));
    TRY(choose(others));
  }
  if (!is_kept) return std::unique_ptr<Hold>();
  ServiceIndex::Held held = index_.hold(uid, ServiceIndex::Allocated::of(service));
  return std::unique_ptr<Hold>(std::make_unique<Reservation>(*this, held));
}

}  // namespace coracle::kinds

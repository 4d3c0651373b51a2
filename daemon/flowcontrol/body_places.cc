// SPDX-License-Identifier: Apache-2.0
// See body_places.h.
#include "daemon/flowcontrol/body_places.h"

#include <utility>

namespace coracle::flowcontrol {

BodyPlaces::Place::Place(Place&& other) noexcept
    : places_(std::exchange(other.places_, nullptr)), user_(std::move(other.user_)), bytes_(other.bytes_) {}

BodyPlaces::Place::~Place() {
  if (places_) places_->leave(*this);
}

Result<BodyPlaces::Place> BodyPlaces::take(const std::string& user, uint64_t bytes) {
  bool admitted = shared_.with([&](Shared& shared) {
    auto found = shared.users.find(user);
    Share held = found == shared.users.end() ? Share() : found->second;
    bool fits = held.places < limits_.places - shared.all.places && shared.all.bytes + held.bytes + bytes <= limits_.bytes;
    if (!fits) return false;
    Share& share = shared.users[user];
    share.places++, share.bytes += bytes;
    shared.all.places++, shared.all.bytes += bytes;
    return true;
  });
  if (admitted) return Place(*this, user, bytes);
  ErrorDetails details;
  details.retry_after_seconds = 1;
  return Error(Code::too_many_requests, "Too many request bodies that have not come, please try again later.")
      .with(std::move(details));
}

void BodyPlaces::leave(const Place& place) {
  shared_.with([&](Shared& shared) {
    auto share = shared.users.find(place.user_);
    shared.all.places--, shared.all.bytes -= place.bytes_;
    share->second.bytes -= place.bytes_;
    if (--share->second.places == 0) shared.users.erase(share);
  });
}

int BodyPlaces::taken() const {
  return shared_.with([](const Shared& shared) { return shared.all.places; });
}

}  // namespace coracle::flowcontrol

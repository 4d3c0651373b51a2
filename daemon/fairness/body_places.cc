// SPDX-License-Identifier: Apache-2.0
// See body_places.h.
#include "daemon/fairness/body_places.h"

#include <utility>

namespace coracle::fairness {

BodyPlaces::Place::Place(Place&& other) noexcept
    : places_(std::exchange(other.places_, nullptr)), user_(std::move(other.user_)), bytes_(other.bytes_) {}

BodyPlaces::Place::~Place() {
  if (places_) places_->leave(*this);
}

Result<BodyPlaces::Place> BodyPlaces::take(const std::string& user, uint64_t bytes) {
  bool admitted = book_.with([&](Book& book) {
    auto found = book.users.find(user);
    Share held = found == book.users.end() ? Share() : found->second;
    bool fits = held.places < limits_.places - book.all.places && book.all.bytes + held.bytes + bytes <= limits_.bytes;
    if (!fits) return false;
    Share& share = book.users[user];
    share.places++, share.bytes += bytes;
    book.all.places++, book.all.bytes += bytes;
    return true;
  });
  if (admitted) return Place(*this, user, bytes);
  ErrorDetails details;
  details.retry_after_seconds = 1;
  return Error(Code::too_many_requests, "Too many request bodies that have not come, please try again later.")
      .with(std::move(details));
}

void BodyPlaces::leave(const Place& place) {
  book_.with([&](Book& book) {
    auto share = book.users.find(place.user_);
    book.all.places--, book.all.bytes -= place.bytes_;
    share->second.bytes -= place.bytes_;
    if (--share->second.places == 0) book.users.erase(share);
  });
}

int BodyPlaces::taken() const {
  return book_.with([](const Book& book) { return book.all.places; });
}

}  // namespace coracle::fairness

// SPDX-License-Identifier: Apache-2.0
// BodyPlaces: who may wait for the rest of a request's body, and for how much of it. Requests that wait hold no seat, but a
// thread and what has come of the body; one user's slow bodies must not take these from all others. Nobody may hold more than
// what he would leave free: one alone gets half of the places, two a third each, and whoever comes next finds some free.
// Thread-safe. Source: A. K. Choudhury, E. L. Hahne, "Dynamic queue length thresholds for shared-memory packet switches".
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "runtime/base/guarded.h"
#include "runtime/base/result.h"

namespace coracle::fairness {

struct BodyLimits {
  int places = 160;
  uint64_t bytes = 32 << 20;  // of the bodies that are waited for, as long as they may become
};

class BodyPlaces {
 public:
  explicit BodyPlaces(BodyLimits limits = {}) : limits_(limits) {}

  class Place {  // held while the body is waited for; the BodyPlaces must outlive it
   public:
    Place(Place&& other) noexcept;
    Place& operator=(Place&&) = delete;
    ~Place();

   private:
    friend class BodyPlaces;
    Place(BodyPlaces& places, std::string user, uint64_t bytes) : places_(&places), user_(std::move(user)), bytes_(bytes) {}
    BodyPlaces* places_;
    std::string user_;
    uint64_t bytes_;
  };
  // Does not block. Errors: too_many_requests, with the seconds after which to try again.
  Result<Place> take(const std::string& user, uint64_t bytes);
  int taken() const;  // by all

 private:
  struct Share {
    int places = 0;
    uint64_t bytes = 0;
  };
  struct Book {
    Share all;
    std::map<std::string, Share> users;  // who holds any
  };
  void leave(const Place& place);

  const BodyLimits limits_;
  Guarded<Book> book_;
};

}  // namespace coracle::fairness

// SPDX-License-Identifier: Apache-2.0
// BodyPlaces: limits the requests that wait for their bodies, and the size of those bodies, per user. Waiting requests hold no
// seat, but they use a thread and memory for the received part; one user's slow bodies must not use all of that. A user may hold
// at most as much as remains free: one user alone gets half of the places, two users a third each, and a further user always
// finds free places. Thread-safe. Source: A. K. Choudhury, E. L. Hahne, "Dynamic queue length thresholds for shared-memory packet
// switches".
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "runtime/base/guarded.h"
#include "runtime/base/result.h"

namespace coracle::flowcontrol {

struct BodyLimits {
  int places = 160;
  uint64_t bytes = 32 << 20;  // the sum of the maximum sizes of the awaited bodies
};

class BodyPlaces {
 public:
  explicit BodyPlaces(BodyLimits limits = {}) : limits_(limits) {}

  class Place {  // held while the body is awaited; the BodyPlaces must outlive it
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
  // Does not block. Errors: too_many_requests, with the seconds for Retry-After.
  Result<Place> take(const std::string& user, uint64_t bytes);
  int taken() const;  // by all users

 private:
  struct Share {
    int places = 0;
    uint64_t bytes = 0;
  };
  struct Shared {
    Share all;
    std::map<std::string, Share> users;  // users who hold places
  };
  void leave(const Place& place);

  const BodyLimits limits_;
  Guarded<Shared> shared_;
};

}  // namespace coracle::flowcontrol

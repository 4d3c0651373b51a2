// SPDX-License-Identifier: Apache-2.0
// Seats: how many seats a request takes: one, and more when it goes through many objects. Pure.
// Source: Kubernetes "API Priority and Fairness", seats occupied by a request; apiserver flowcontrol/request.
#pragma once

#include <cstdint>

namespace coracle::fairness {

constexpr int kSeatsMax = 10;  // of one request
constexpr int64_t kObjectsPerSeat = 100;

struct ListWork {
  int64_t stored = 0;       // objects of the kind
  int64_t limit = 0;        // of a page; 0: all
  bool one_object = false;  // the request names it
  bool from_memory = true;  // else what it passes over is read for it
  bool selects = false;     // by label or field
};
// 1 to `seats_max`, and never more than kSeatsMax. `seats_max` 0: as many as that.
int seats_of_list(const ListWork& work, int seats_max);

// The most that one request takes of a level that queues, so that hands can still be dealt side by side.
int seats_max_of_level(int nominal_limit, int hand_size);

}  // namespace coracle::fairness

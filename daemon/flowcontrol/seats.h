// SPDX-License-Identifier: Apache-2.0
// The seats of a request: one, or more if it reads many objects. Pure. Source: Kubernetes "API Priority and Fairness", seats
// occupied by a request; apiserver flowcontrol/request.
#pragma once

#include <cstdint>

namespace coracle::flowcontrol {

constexpr int kSeatsMax = 10;  // per request
constexpr int64_t kObjectsPerSeat = 100;

struct ListWork {
  int64_t stored = 0;       // objects of the kind
  int64_t limit = 0;        // page size; 0: all
  bool one_object = false;  // the request names one object
  bool from_memory = true;  // false: a continued page or an earlier revision, whose objects are collected first
  bool selects = false;     // has a label or field selector
};
// 1 to `seats_max`, at most kSeatsMax. `seats_max` 0: no limit of the level.
int seats_of_list(const ListWork& work, int seats_max);

// The limit of seats per request in a level with queues, so that the requests of several queues can run at once.
int seats_max_of_level(int nominal_limit, int hand_size);

}  // namespace coracle::flowcontrol

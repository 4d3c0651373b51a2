// SPDX-License-Identifier: Apache-2.0
// See seats.h.
#include "daemon/flowcontrol/seats.h"

#include <algorithm>
#include <cmath>

namespace coracle::flowcontrol {
namespace {

constexpr double kPartOfLevel = 0.15;

}  // namespace

int seats_of_list(const ListWork& work, int seats_max) {
  if (seats_max <= 0) seats_max = kSeatsMax;
  int64_t page = work.limit > 0 ? std::min(work.limit, work.stored) : work.stored;
  int64_t objects = work.one_object ? 1 : work.from_memory ? work.stored : work.selects ? work.stored + page : 2 * page;
  int64_t seats = (objects + kObjectsPerSeat - 1) / kObjectsPerSeat;
  return int(std::clamp<int64_t>(seats, 1, std::min(seats_max, kSeatsMax)));
}

int seats_max_of_level(int nominal_limit, int hand_size) {
  int part = int(std::ceil(nominal_limit * kPartOfLevel));
  return std::max(1, std::min(part, hand_size > 0 ? nominal_limit / hand_size : part));
}

}  // namespace coracle::flowcontrol

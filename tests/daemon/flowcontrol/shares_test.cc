// SPDX-License-Identifier: Apache-2.0
// Shares of the server's seats, borrowing by demand, the width of requests, and Retry-After.
#include "daemon/flowcontrol/shares.h"

#include <gtest/gtest.h>

#include "daemon/flowcontrol/retry_after.h"
#include "daemon/flowcontrol/seats.h"

namespace coracle::flowcontrol {
namespace {

using std::chrono::seconds;

TEST(Shares, limits_follow_from_shares) {
  std::vector<SeatLimits> limits =
      seat_limits({{false, 30, 33, {}}, {false, 10, 0, 50}, {true, 0, 0, {}}, {false, 20, 100, 0}}, 60);
  EXPECT_EQ(limits[0].nominal, 30);
  EXPECT_EQ(limits[0].lower, 20) << "a third may be lent";
  EXPECT_EQ(limits[0].upper, 90) << "without a limit: all that the server has";
  EXPECT_EQ(limits[1].nominal, 10);
  EXPECT_EQ(limits[1].lower, 10);
  EXPECT_EQ(limits[1].upper, 15);
  EXPECT_EQ(limits[2].nominal, 0);
  EXPECT_EQ(limits[3].lower, 0);
  EXPECT_EQ(limits[3].upper, 20);
  EXPECT_EQ(seat_limits({{false, 1, 0, {}}, {false, 2, 0, {}}}, 10)[0].nominal, 4) << "rounded up";
  EXPECT_EQ(seat_limits({{false, 0, 0, {}}}, 10)[0].nominal, 0);
}

TEST(Shares, what_is_not_asked_for_is_lent_within_limits) {
  SeatLimits keeps{10, 10, 10}, lends{10, 0, 10}, borrows{10, 10, 14}, borrows_all{10, 10, 40};
  EXPECT_EQ(allocate_seats({{false, keeps, 0, 0}, {false, borrows_all, 30, 30}}).seats, (std::vector<int>{10, 10}))
      << "who lends nothing keeps all";
  EXPECT_EQ(allocate_seats({{false, lends, 0, 0}, {false, borrows_all, 30, 30}}).seats, (std::vector<int>{0, 20}));
  EXPECT_EQ(allocate_seats({{false, lends, 0, 0}, {false, borrows, 30, 30}}).seats[1], 14) << "no more than it may borrow";
  EXPECT_EQ(allocate_seats({{false, lends, 6, 3}, {false, borrows_all, 30, 30}}).seats, (std::vector<int>{6, 14}))
      << "what was used lately is not lent";
  SeatAllocation even = allocate_seats({{false, lends, 5, 10}, {false, lends, 5, 10}});
  EXPECT_EQ(even.seats, (std::vector<int>{10, 10}));
  EXPECT_NEAR(even.fair_fraction, 1.0, 1e-6);
}

TEST(Shares, exempt_levels_take_what_they_use_and_others_share_what_is_left) {
  SeatLimits none{0, 0, 0}, half{10, 5, 30}, small{4, 2, 30};
  SeatAllocation allocated = allocate_seats({{true, none, 3, 3}, {false, half, 10, 10}, {false, small, 4, 4}});
  EXPECT_EQ(allocated.seats, (std::vector<int>{3, 8, 3})) << "eleven of fourteen are left, of which seven are nobody's to lend";
  EXPECT_EQ(allocate_seats({{true, none, 50, 50}, {false, half, 10, 10}}).seats, (std::vector<int>{50, 5}))
      << "never below what may not be lent";
}

TEST(Shares, demand_is_averaged_over_time_and_forgotten_slowly) {
  FakeClock clock;
  SeatDemand demand(clock.steady());
  demand.set(4, clock.steady());
  clock.advance(seconds(5));
  demand.set(0, clock.steady());
  clock.advance(seconds(5));
  demand.close_period(clock.steady());
  EXPECT_EQ(demand.high_watermark, 4);
  EXPECT_NEAR(demand.average, 2, 1e-9);
  EXPECT_NEAR(demand.deviation, 2, 1e-9);
  EXPECT_NEAR(demand.smoothed, 4, 1e-9);
  clock.advance(seconds(10));
  demand.close_period(clock.steady());
  EXPECT_EQ(demand.high_watermark, 0);
  EXPECT_NEAR(demand.smoothed, 4 * kDemandSmoothing, 1e-9);
  clock.advance(seconds(300));
  demand.close_period(clock.steady());
  EXPECT_NEAR(demand.smoothed, 2, 0.1) << "half of it after five minutes, looked at or not";
}

TEST(Seats, lists_take_as_many_as_they_go_through_objects) {
  struct Row {
    const char* name;
    ListWork work;
    int seats_max, want;
  };
  for (const Row& row : {
           Row{"few", {50, 0, false, true, false}, 0, 1},
           Row{"more", {250, 0, false, true, false}, 0, 3},
           Row{"a page of them", {950, 10, false, true, false}, 0, 10},
           Row{"no more than ten", {100'000, 0, false, true, false}, 0, 10},
           Row{"nor than the level has", {100'000, 0, false, true, false}, 4, 4},
           Row{"one by its name", {100'000, 0, true, true, false}, 0, 1},
           Row{"a page of another time", {1000, 100, false, false, false}, 0, 2},
           Row{"with a selector all are looked at", {400, 100, false, false, true}, 0, 5},
           Row{"none", {0, 0, false, true, false}, 0, 1},
       })
    EXPECT_EQ(seats_of_list(row.work, row.seats_max), row.want) << row.name;
  EXPECT_EQ(seats_max_of_level(600, 8), 75);
  EXPECT_EQ(seats_max_of_level(27, 6), 4);
  EXPECT_EQ(seats_max_of_level(3, 6), 1);
}

TEST(RetryAfter, grows_with_refusals_and_shrinks_without) {
  RetryAfter retry;
  EXPECT_EQ(retry.seconds(), 1);
  for (int i = 0; i < 3; i++) retry.refused(100);
  EXPECT_EQ(retry.seconds(), 1) << "a second is judged when it is over";
  retry.refused(101);
  EXPECT_EQ(retry.seconds(), 2);
  for (int64_t second = 101; second < 200; second++)
    for (int i = 0; i < 200; i++) retry.refused(second);
  EXPECT_EQ(retry.seconds(), kRetryAfterMax);
  for (int64_t second = 1000; second < 1100; second += 1) retry.refused(second);
  EXPECT_LT(retry.seconds(), kRetryAfterMax);
  for (int64_t second = 2000; second < 5000; second += 40) retry.refused(second);
  EXPECT_EQ(retry.seconds(), 1);
}

}  // namespace
}  // namespace coracle::flowcontrol

// SPDX-License-Identifier: Apache-2.0
// Slots for requests that wait for their bodies: one client's slow bodies do not take the slots of others.
#include "daemon/flowcontrol/body_places.h"

#include <gtest/gtest.h>

#include <vector>

namespace coracle::flowcontrol {
namespace {

std::vector<BodyPlaces::Place> as_many_as_can_be(BodyPlaces& places, const std::string& user, uint64_t bytes) {
  std::vector<BodyPlaces::Place> held;
  while (auto place = places.take(user, bytes)) held.push_back(*std::move(place));
  return held;
}

TEST(BodyPlaces, one_user_gets_half_of_them_and_the_next_a_part_of_the_rest) {
  BodyPlaces places({160, 1 << 30});
  auto first = as_many_as_can_be(places, "first", 100);
  EXPECT_EQ(first.size(), 80u);
  auto second = as_many_as_can_be(places, "second", 100);
  EXPECT_EQ(second.size(), 40u);
  std::vector<std::vector<BodyPlaces::Place>> others;
  for (int i = 0; i < 4; i++) {
    others.push_back(as_many_as_can_be(places, "other-" + std::to_string(i), 100));
    EXPECT_GT(others.back().size(), 0u) << i;
  }
  EXPECT_FALSE(places.take("first", 100)) << "who has much gets no more";
}

TEST(BodyPlaces, large_bodies_take_more) {
  BodyPlaces places({160, 32 << 20});
  auto first = as_many_as_can_be(places, "first", 3 << 20);
  EXPECT_EQ(first.size(), 5u) << "half of what may be held";
  auto second = as_many_as_can_be(places, "second", 3 << 20);
  EXPECT_EQ(second.size(), 3u);
  EXPECT_TRUE(places.take("third", 3 << 20)) << "there is always some space for the next";
}

TEST(BodyPlaces, come_back_and_say_when_to_ask_again) {
  BodyPlaces places({2, 100});
  {
    auto held = MUST(places.take("a", 50));
    auto refused = places.take("a", 1);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), Code::too_many_requests);
    EXPECT_GT(refused.error().details()->retry_after_seconds, 0);
    EXPECT_EQ(places.taken(), 1);
  }
  EXPECT_EQ(places.taken(), 0);
  EXPECT_TRUE(places.take("a", 50));
  EXPECT_FALSE(places.take("a", 101)) << "more than there ever is";
}

}  // namespace
}  // namespace coracle::flowcontrol

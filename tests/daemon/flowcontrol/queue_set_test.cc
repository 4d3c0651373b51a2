// SPDX-License-Identifier: Apache-2.0
// Queues and seats of one level, with a fake clock; and shuffle sharding.
#include "daemon/flowcontrol/queue_set.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "daemon/flowcontrol/shuffle.h"

namespace coracle::flowcontrol {
namespace {

using std::chrono::milliseconds;

QueueSettings queues(int count, int hand, int length) { return {false, count, hand, length}; }

// One level; each arriving name needs one seat. Records the order in which they get seats.
struct Level {
  FakeClock clock;
  QueueSet set;
  std::map<std::string, std::unique_ptr<Request>> all;
  std::string order;

  Level(const QueueSettings& settings, int limit) : set(settings, limit, clock.steady()) {}

  Arrival arrive(const std::string& name, uint64_t flow, int seats = 1) {
    auto& request = all[name] = std::make_unique<Request>();
    request->seats = seats;
    Arrival arrival = set.arrive(*request, flow, clock.steady());
    dispatch();
    return arrival;
  }
  void dispatch() {
    while (Request* seated = set.start_next(clock.steady()))
      for (const auto& [name, request] : all)
        if (request.get() == seated) order += name + " ";
  }
  void finish(const std::string& name) {
    set.finish(*all[name], clock.steady());
    all.erase(name);
    dispatch();
  }
  bool runs(const std::string& name) { return all.count(name) && all[name]->running; }
};

TEST(QueueSet, a_level_without_queues_runs_as_many_as_it_has_seats) {
  Level level({false, 0, 0, 0}, 2);
  EXPECT_EQ(level.arrive("a", 0), Arrival::runs);
  EXPECT_EQ(level.arrive("b", 0), Arrival::runs);
  EXPECT_EQ(level.arrive("c", 0), Arrival::no_seats);
  level.all.erase("c");
  level.finish("a");
  EXPECT_EQ(level.arrive("d", 0), Arrival::runs);
  EXPECT_EQ(level.set.seats_in_use(), 2);
}

TEST(QueueSet, an_exempt_level_runs_everybody_and_counts_them) {
  Level level({true, 0, 0, 0}, 0);
  for (const char* name : {"a", "b", "c"}) EXPECT_EQ(level.arrive(name, 0, 5), Arrival::runs);
  EXPECT_EQ(level.set.executing(), 3);
  EXPECT_EQ(level.set.seats_in_use(), 15);
}

TEST(QueueSet, a_queue_holds_as_many_as_it_may_while_no_seat_is_free) {
  Level level(queues(1, 1, 2), 1);
  EXPECT_EQ(level.arrive("a", 0), Arrival::waits);
  EXPECT_TRUE(level.runs("a")) << "its turn came at once";
  EXPECT_EQ(level.arrive("b", 0), Arrival::waits);
  EXPECT_EQ(level.arrive("c", 0), Arrival::waits);
  EXPECT_FALSE(level.runs("b"));
  EXPECT_EQ(level.arrive("d", 0), Arrival::queue_full);
  level.all.erase("d");
  level.finish("a");
  level.finish("b");
  EXPECT_EQ(level.order, "a b c ") << "in the order of their arrival";
}

// The flows of many requests and of one other, in different queues: with a hand size of one, the hash is the queue's number.
TEST(QueueSet, flows_are_served_in_turn) {
  Level level(queues(4, 1, 50), 1);
  level.arrive("first", 0);
  for (const char* name : {"c1", "c2", "c3", "c4"}) level.arrive(name, 0);
  level.arrive("jane", 1);
  for (const char* name : {"first", "jane", "c1", "c2", "c3", "c4"}) {
    ASSERT_TRUE(level.runs(name)) << name << " after " << level.order;
    level.clock.advance(milliseconds(3));
    level.finish(name);
  }
  EXPECT_TRUE(level.set.idle());
}

TEST(QueueSet, who_takes_long_gives_way_to_others) {
  Level level(queues(4, 1, 50), 1);
  level.arrive("slow0", 0);
  for (const char* name : {"slow1", "slow2"}) level.arrive(name, 0);
  for (const char* name : {"quick1", "quick2", "quick3"}) level.arrive(name, 1);
  level.clock.advance(milliseconds(30));  // ten times the estimate
  level.finish("slow0");
  for (int i = 0; i < 3; i++) {
    std::string name = level.order.substr(level.order.find_last_of(' ', level.order.size() - 2) + 1);
    name.pop_back();
    level.clock.advance(milliseconds(3));
    level.finish(name);
  }
  EXPECT_EQ(level.order.find("slow2"), std::string::npos) << level.order;
  EXPECT_NE(level.order.find("quick3"), std::string::npos) << level.order;
}

TEST(QueueSet, a_wide_request_takes_its_seats_and_is_waited_for) {
  Level level(queues(2, 1, 50), 5);
  level.arrive("a", 0, 4);
  level.arrive("wide", 1, 4);
  EXPECT_FALSE(level.runs("wide"));
  level.arrive("b", 0, 1);
  EXPECT_FALSE(level.runs("b")) << "the wide one came first, and would never come if narrow ones passed it by";
  EXPECT_EQ(level.set.seats_waiting(), 5);
  level.finish("a");
  EXPECT_TRUE(level.runs("wide"));
  EXPECT_TRUE(level.runs("b"));
  EXPECT_EQ(level.set.seats_in_use(), 5);
}

TEST(QueueSet, one_that_is_wider_than_the_level_runs_alone) {
  Level level(queues(1, 1, 50), 2);
  level.arrive("a", 0);
  level.arrive("wide", 0, 5);
  EXPECT_FALSE(level.runs("wide"));
  level.finish("a");
  EXPECT_TRUE(level.runs("wide"));
  level.arrive("b", 0);
  EXPECT_FALSE(level.runs("b"));
  level.finish("wide");
  EXPECT_TRUE(level.runs("b"));
}

TEST(QueueSet, who_gives_up_leaves_no_trace) {
  Level level(queues(2, 1, 50), 1);
  level.arrive("a", 0);
  level.arrive("b", 1, 3);
  level.arrive("c", 0);
  level.set.give_up(*level.all["b"], level.clock.steady());
  level.all.erase("b");
  EXPECT_EQ(level.set.waiting(), 1);
  EXPECT_EQ(level.set.seats_waiting(), 1);
  level.finish("a");
  EXPECT_TRUE(level.runs("c"));
}

TEST(QueueSet, settings_change_under_those_who_wait) {
  Level level(queues(8, 8, 50), 1);
  level.arrive("a", 7);
  for (const char* name : {"b", "c", "d", "e"}) level.arrive(name, 7);
  level.set.configure(queues(1, 1, 50), level.clock.steady());
  level.arrive("f", 7);
  for (const char* name : {"a"}) level.finish(name);
  level.set.configure({false, 0, 0, 0}, level.clock.steady());  // queueing is off now, but queued requests stay
  level.set.set_limit(10, level.clock.steady());
  level.dispatch();
  for (const char* name : {"b", "c", "d", "e", "f"}) EXPECT_TRUE(level.runs(name)) << name;
  for (const char* name : {"b", "c", "d", "e", "f"}) level.finish(name);
  EXPECT_TRUE(level.set.idle());
}

TEST(QueueSet, any_order_of_comings_and_goings_adds_up) {
  std::mt19937 random(7);
  auto below = [&](int bound) { return int(random() % unsigned(bound)); };
  Level level(queues(16, 3, 4), 5);
  int number = 0;
  for (int step = 0; step < 5000; step++) {
    level.clock.advance(milliseconds(below(4)));
    std::vector<std::string> running, waiting;
    for (const auto& [name, request] : level.all) (request->running ? running : waiting).push_back(name);
    int what = below(20);
    if (what < 10) {
      std::string name = std::to_string(number++);
      if (level.arrive(name, random(), 1 + below(4)) == Arrival::queue_full) level.all.erase(name);
    } else if (what < 16 && !running.empty()) {
      level.finish(running[size_t(below(int(running.size())))]);
    } else if (what < 18 && !waiting.empty()) {
      const std::string& name = waiting[size_t(below(int(waiting.size())))];
      level.set.give_up(*level.all[name], level.clock.steady());
      level.all.erase(name);
      level.dispatch();
    } else if (what == 18) {
      level.set.set_limit(1 + below(8), level.clock.steady());
      level.dispatch();
    } else if (what == 19) {
      int count = 1 + below(16);
      level.set.configure(queues(count, std::min(count, 3), 4), level.clock.steady());
    }
    int runs = 0, waits = 0, used = 0, wanted = 0;
    for (const auto& [name, request] : level.all) {
      (request->running ? runs : waits) += 1;
      (request->running ? used : wanted) += request->seats;
    }
    ASSERT_EQ(level.set.executing(), runs) << step;
    ASSERT_EQ(level.set.waiting(), waits) << step;
    ASSERT_EQ(level.set.seats_in_use(), used) << step;
    ASSERT_EQ(level.set.seats_waiting(), wanted) << step;
    ASSERT_TRUE(runs > 0 || waits == 0) << step << ": somebody waits for nobody";
  }
  for (bool any = true; any;) {
    any = false;
    for (const auto& [name, request] : level.all)
      if (request->running && (any = true)) {
        level.finish(std::string(name));
        break;
      }
  }
  EXPECT_TRUE(level.set.idle() && level.all.empty());
}

TEST(QueueSet, more_seats_let_in_who_waits) {
  Level level(queues(1, 1, 50), 1);
  for (const char* name : {"a", "b", "c"}) level.arrive(name, 0);
  level.set.set_limit(2, level.clock.steady());
  level.dispatch();
  EXPECT_TRUE(level.runs("b"));
  EXPECT_FALSE(level.runs("c"));
}

TEST(QueueSet, a_flow_picks_the_shortest_queue_of_its_hand) {
  Level level(queues(4, 4, 1), 1);
  level.arrive("running", 3);
  for (const char* name : {"a", "b", "c", "d"}) EXPECT_EQ(level.arrive(name, 3), Arrival::waits) << "each in a queue of its own";
  EXPECT_EQ(level.arrive("e", 3), Arrival::queue_full);
}

std::vector<int> dealt(uint64_t hash, int deck_size, int hand_size) {
  const Hand hand = deal(hash, deck_size, hand_size);
  return {hand.begin(), hand.end()};
}

TEST(Shuffle, hands_are_of_different_cards_all_over_the_deck) {
  std::set<int> seen;
  for (uint64_t hash = 0; hash < 2000; hash++) {
    const Hand hand = deal(hash * 0x9e3779b97f4a7c15ull, 16, 4);
    ASSERT_EQ(hand.size(), 4u);
    EXPECT_EQ(std::set<int>(hand.begin(), hand.end()).size(), 4u);
    for (int card : hand) {
      EXPECT_GE(card, 0);
      EXPECT_LT(card, 16);
      seen.insert(card);
    }
  }
  EXPECT_EQ(seen.size(), 16u);
  EXPECT_EQ(deal(5, 2, 6).size(), 2u) << "no more than there are";
  EXPECT_EQ(deal(5, 100, 40).size(), size_t(kHandMax)) << "no more than a hash has bits for";
  EXPECT_EQ(dealt(0, 5, 5), (std::vector<int>{0, 1, 2, 3, 4}));
  EXPECT_EQ(dealt(119, 5, 5), (std::vector<int>{4, 3, 2, 1, 0}));
}

// Every ordered hand of two out of four is equally frequent.
TEST(Shuffle, every_hand_is_as_likely) {
  std::map<std::vector<int>, int> times;
  for (uint64_t hash = 0; hash < 1200; hash++) times[dealt(hash, 4, 2)]++;
  EXPECT_EQ(times.size(), 12u);
  for (const auto& [hand, count] : times) EXPECT_EQ(count, 100);
}

TEST(Shuffle, flows_are_told_apart) {
  EXPECT_EQ(hash_flow("s", "jane"), hash_flow("s", "jane"));
  EXPECT_NE(hash_flow("s", "jane"), hash_flow("s", "joe"));
  EXPECT_NE(hash_flow("sj", "ane"), hash_flow("s", "jane"));
}

}  // namespace
}  // namespace coracle::flowcontrol

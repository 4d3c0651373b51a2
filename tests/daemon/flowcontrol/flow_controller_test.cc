// SPDX-License-Identifier: Apache-2.0
// Seats, queues and rejections, with threads.
#include "daemon/flowcontrol/flow_controller.h"

#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "runtime/base/guarded.h"
#include "tests/daemon/flowcontrol/user.h"

namespace coracle::flowcontrol {
namespace {

using std::chrono::milliseconds;

auth::Attributes pods() {
  auth::Attributes attributes;
  attributes.verb = "get", attributes.resource = "pods", attributes.ns = "default";
  return attributes;
}

json::value level(const std::string& name, int shares, const std::string& response, int lendable = 0) {
  return MUST(parse_json(R"({"metadata":{"name":")" + name + R"(","uid":"uid-of-)" + name +
                         R"("},"spec":{"type":"Limited","limited":{"nominalConcurrencyShares":)" + std::to_string(shares) +
                         R"(,"lendablePercent":)" + std::to_string(lendable) + R"(,"limitResponse":)" + response + "}}}"));
}
const std::string kRejects = R"({"type":"Reject"})",
                  kQueues = R"({"type":"Queue","queuing":{"queues":8,"handSize":1,"queueLengthLimit":5}})";

json::value schema(const std::string& name, const std::string& of_level, const std::string& who) {
  return MUST(parse_json(
      R"({"metadata":{"name":")" + name + R"(","uid":"uid-of-)" + name + R"("},"spec":{"priorityLevelConfiguration":{"name":")" +
      of_level +
      R"("},"matchingPrecedence":1,"distinguisherMethod":{"type":"ByUser"},"rules":[{"subjects":[{"kind":"User","user":{"name":")" +
      who +
      R"("}}],"resourceRules":[{"verbs":["*"],"apiGroups":["*"],"resources":["*"],"clusterScope":true,"namespaces":["*"]}]}]}})"));
}

// One level "l", and one schema that matches everybody, with flows by user.
FlowRules one_level(const std::string& response) { return {{schema("s", "l", "*")}, {level("l", 1, response)}}; }

const FlowController::FlowCount& flow(const std::vector<FlowController::Count>& counts, const std::string& of_level = "l",
                                      const std::string& name = "s") {
  for (const FlowController::Count& count : counts)
    if (count.level == of_level && count.schemas.count(name)) return count.schemas.at(name);
  static const FlowController::FlowCount none;
  return none;
}

TEST(FlowController, exempt_requests_take_no_seats_from_others) {
  FakeClock clock;
  json::value exempt = MUST(parse_json(R"({"metadata":{"name":"e"},"spec":{"type":"Exempt"}})"));
  FlowController flow_controller({{schema("s", "l", "jane"), schema("a", "e", "admin")}, {exempt, level("l", 1, kRejects, 90)}},
                                 {10, 10, milliseconds(50)}, clock);
  Classified admin = flow_controller.classify(user("admin"), pods()), jane = flow_controller.classify(user("jane"), pods());
  ASSERT_TRUE(admin.exempt());
  {
    std::vector<FlowController::Seat> seats;
    for (int i = 0; i < 10; ++i) seats.push_back(MUST(flow_controller.enter(admin)));
    clock.advance(kAdjustmentPeriod);
    seats.push_back(MUST(flow_controller.enter(admin)));  // now the limits are adjusted
  }
  std::vector<FlowController::Seat> seats;
  for (int i = 0; i < 10; ++i) {
    auto seat = flow_controller.enter(jane);
    ASSERT_TRUE(seat) << i;
    seats.push_back(*std::move(seat));
  }
}

TEST(FlowController, a_level_that_does_not_queue_refuses_and_recovers) {
  FlowController flow_controller(one_level(kRejects), {2, 10, milliseconds(50)});
  Classified jane = flow_controller.classify(user("jane"), pods());
  EXPECT_EQ(jane.schema_uid(), "uid-of-s");
  EXPECT_EQ(jane.level_uid(), "uid-of-l");
  {
    auto one = flow_controller.enter(jane), two = flow_controller.enter(jane), three = flow_controller.enter(jane);
    EXPECT_TRUE(one && two);
    ASSERT_FALSE(three);
    EXPECT_EQ(three.error().code(), Code::too_many_requests);
    EXPECT_EQ(three.error().details()->retry_after_seconds, 1);
    EXPECT_EQ(flow(flow_controller.counts()).executing, 2);
  }
  EXPECT_TRUE(flow_controller.enter(jane));
  EXPECT_EQ(flow(flow_controller.counts()).rejected.at("concurrency-limit"), 1u);
  EXPECT_EQ(flow(flow_controller.counts()).dispatched, 3u);
  EXPECT_EQ(flow(flow_controller.counts()).executing, 0);
}

TEST(FlowController, who_waits_too_long_is_told_to_come_back) {
  FlowController flow_controller(one_level(kQueues), {1, 10, milliseconds(30)});
  Classified jane = flow_controller.classify(user("jane"), pods());
  auto one = flow_controller.enter(jane);
  EXPECT_FALSE(flow_controller.enter(jane));
  EXPECT_EQ(flow_controller.counts()[0].waiting, 0) << "it has left the queue";
  EXPECT_EQ(flow(flow_controller.counts()).waiting, 0);
  EXPECT_EQ(flow(flow_controller.counts()).rejected.at("time-out"), 1u);
}

TEST(FlowController, a_crowd_does_not_hold_up_others) {
  FlowController flow_controller(one_level(kQueues), {1, 10, milliseconds(20000)});
  Classified crowd = flow_controller.classify(user("crowd"), pods());
  Classified jane = flow_controller.classify(user("jane"), pods());
  std::optional<FlowController::Seat> first(MUST(flow_controller.enter(crowd)));
  Guarded<std::string> order;
  std::vector<std::thread> threads;
  auto waits = [&](const Classified& who, char name) {
    int before = flow_controller.counts()[0].waiting;
    threads.emplace_back([&, who, name] {
      auto seat = flow_controller.enter(who);
      order.with([&](std::string& text) { text += seat ? name : '!'; });
    });
    while (flow_controller.counts()[0].waiting == before) std::this_thread::yield();
  };
  for (int i = 0; i < 5; i++) waits(crowd, 'c');
  waits(jane, 'j');
  EXPECT_FALSE(flow_controller.enter(crowd)) << "its queue is full";
  EXPECT_EQ(flow(flow_controller.counts()).waiting_seats, 6);
  first.reset();
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(order.with([](const std::string& text) { return text; }).find('j'), 1u) << "second at the latest, not sixth";
  EXPECT_EQ(flow(flow_controller.counts()).rejected.at("queue-full"), 1u);
}

TEST(FlowController, threads_that_wait_are_bounded_also_where_queues_have_space) {
  FlowController flow_controller(one_level(R"({"type":"Queue","queuing":{"queues":8,"handSize":8,"queueLengthLimit":100}})"),
                                 {1, 4, milliseconds(20000)});
  std::optional<FlowController::Seat> first(MUST(flow_controller.enter(flow_controller.classify(user("a"), pods()))));
  std::vector<std::thread> threads;
  auto waits = [&](const char* name) {
    int before = flow_controller.counts()[0].waiting;
    threads.emplace_back([&, who = flow_controller.classify(user(name), pods())] { EXPECT_TRUE(flow_controller.enter(who)); });
    while (flow_controller.counts()[0].waiting == before) std::this_thread::yield();
  };
  waits("crowd"), waits("crowd");
  EXPECT_FALSE(flow_controller.enter(flow_controller.classify(user("crowd"), pods())))
      << "half of the places are the most for one flow";
  waits("jane"), waits("joe");
  EXPECT_FALSE(flow_controller.enter(flow_controller.classify(user("jim"), pods()))) << "all places are taken";
  first.reset();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(flow_controller.counts()[0].executing, 0);
}

TEST(FlowController, wide_requests_take_several_seats) {
  FlowController flow_controller(one_level(kRejects), {4, 10, milliseconds(50)});
  Classified jane = flow_controller.classify(user("jane"), pods());
  auto wide = flow_controller.enter(jane, 3);
  auto narrow = flow_controller.enter(jane, 1);
  EXPECT_TRUE(wide && narrow);
  EXPECT_FALSE(flow_controller.enter(jane, 1));
  EXPECT_EQ(flow(flow_controller.counts()).executing_seats, 4);
}

TEST(FlowController, what_others_leave_idle_is_lent_and_given_back_when_they_ask) {
  FakeClock clock;
  FlowRules rules{{schema("s", "l", "jane"), schema("t", "other", "joe")},
                  {level("l", 1, kRejects), level("other", 3, kRejects, 100)}};
  FlowController flow_controller(rules, {4, 10, milliseconds(50)}, clock);
  Classified jane = flow_controller.classify(user("jane"), pods()), joe = flow_controller.classify(user("joe"), pods());
  auto fill = [&](const Classified& who) {
    std::vector<FlowController::Seat> seats;
    for (int i = 0; i < 6; i++)
      if (auto seat = flow_controller.enter(who)) seats.push_back(*std::move(seat));
    return int(seats.size());
  };
  EXPECT_EQ(fill(jane), 4);
  auto lonely = flow_controller.enter(joe);
  EXPECT_TRUE(lonely) << "one at a time runs in any case";
  clock.advance(std::chrono::seconds(10));
  EXPECT_LE(fill(jane), 3) << "somebody asked for a seat of the other level";
  EXPECT_EQ(flow_controller.counts()[1].limits.lower, 0);

  FlowRules keeps{{schema("s", "l", "jane")}, {level("l", 1, kRejects), level("other", 3, kRejects, 0)}};
  FlowController strict(keeps, {4, 10, milliseconds(50)}, clock);
  EXPECT_TRUE(strict.enter(jane));
  EXPECT_EQ(strict.counts()[0].current_limit, 1);
}

TEST(FlowController, rules_change_under_those_who_run) {
  FlowController flow_controller(one_level(kRejects), {1, 10, milliseconds(50)});
  Classified jane = flow_controller.classify(user("jane"), pods());
  {
    auto seat = flow_controller.enter(jane);
    ASSERT_TRUE(seat);
    flow_controller.set_rules({{schema("t", "m", "*"), schema("dangles", "l", "*")}, {level("m", 1, kRejects)}});
    EXPECT_EQ(flow_controller.classify(user("jane"), pods()).level(), "m");
    EXPECT_EQ(flow_controller.counts().size(), 2u) << "somebody is still in the level that is gone";
  }
  EXPECT_EQ(flow_controller.counts().size(), 1u);
  EXPECT_TRUE(flow_controller.enter(jane)) << "of a level that is gone: not limited";
}

TEST(FlowController, a_change_of_rules_lets_in_who_waits) {
  FlowController flow_controller(one_level(kQueues), {1, 10, milliseconds(20000)});
  Classified jane = flow_controller.classify(user("jane"), pods());
  auto first = flow_controller.enter(jane);
  std::thread second([&] { EXPECT_TRUE(flow_controller.enter(jane)); });
  while (flow_controller.counts()[0].waiting == 0) std::this_thread::yield();
  json::value exempt = MUST(parse_json(R"({"metadata":{"name":"l"},"spec":{"type":"Exempt"}})"));
  flow_controller.set_rules({{schema("s", "l", "*")}, {exempt}});
  second.join();
  EXPECT_TRUE(flow_controller.classify(user("jane"), pods()).exempt());
}

}  // namespace
}  // namespace coracle::flowcontrol

// SPDX-License-Identifier: Apache-2.0
// The loop: order, back-off, what wakes a parked pod, and what is told about it.
#include "daemon/scheduler/scheduler.h"

#include <gtest/gtest.h>

#include "daemon/scheduler/queue.h"
#include "runtime/base/guarded.h"
#include "tests/store/client/fake_client.h"

namespace coracle::scheduler {
namespace {

using namespace std::chrono_literals;

TEST(SchedulingQueue, gives_the_most_important_then_the_oldest) {
  SchedulingQueue queue;
  SteadyTime now{};
  queue.add({"d", "young"}, {0, "2024-01-02T00:00:00Z"});
  queue.add({"d", "old"}, {0, "2024-01-01T00:00:00Z"});
  queue.add({"d", "important"}, {10, "2024-01-03T00:00:00Z"});
  for (const char* want : {"important", "old", "young"}) EXPECT_EQ(queue.pop(now)->name, want);
  EXPECT_FALSE(queue.pop(now));
}

TEST(SchedulingQueue, parked_pods_come_back_when_woken_and_no_sooner_than_their_back_off) {
  SchedulingQueue queue;
  SteadyTime now{};
  const Key a{"d", "a"};
  queue.add(a, {});
  for (auto delay : {1s, 2s, 4s, 8s, 10s, 10s}) {
    ASSERT_TRUE(queue.pop(now)) << delay.count();
    queue.park(a, now);
    EXPECT_FALSE(queue.pop(now + 1h));  // not by time alone
    queue.wake(now);
    EXPECT_FALSE(queue.pop(now + delay - 1ms)) << delay.count();
    now += delay;
    EXPECT_EQ(queue.next_due(), now);
  }
  ASSERT_TRUE(queue.pop(now));
  queue.wake(now);  // something changed while it was decided
  queue.park(a, now);
  EXPECT_TRUE(queue.next_due());
  queue.remove(a);
  EXPECT_FALSE(queue.pop(now + 1h));
  EXPECT_EQ(queue.size(), 0u);
}

TEST(SchedulingQueue, company_wakes_only_those_who_asked_for_it) {
  SchedulingQueue queue;
  SteadyTime now{};
  for (const char* name : {"alone", "social"}) {
    queue.add({"d", name}, {0, "", std::string_view(name) == "social"});
    queue.pop(now);
    queue.park({"d", name}, now);
  }
  now += 1h;
  queue.wake(now, true);
  EXPECT_EQ(queue.pop(now)->name, "social");
  EXPECT_FALSE(queue.pop(now));
}

class CollectedEvents : public EventSink {
 public:
  void post(EventRecord record) override {
    texts_.with([&](auto& list) { list.push_back(record.reason + ": " + record.message); });
  }
  std::string take() {
    std::string out;
    for (const std::string& text : texts_.with([](auto& list) { return std::exchange(list, {}); })) out += text + "\n";
    return out;
  }

 private:
  Guarded<std::vector<std::string>> texts_;
};

struct SchedulerTest : testing::Test {
  FakeClock clock;
  FakeClient client{clock};
  CollectedEvents events;
  Informers informers{client};
  Scheduler scheduler{client, informers, events, clock};

  void start() {
    MUST(informers.start());
    settle();
  }
  void settle() {
    for (client.settle(); scheduler.turn(); client.settle()) {
    }
  }
  void put_node(const std::string& cpu, const std::string& spec = "{}") {
    client.put(kNode, R"({"metadata":{"name":"pi"},"spec":)" + spec + R"(,"status":{"allocatable":{"cpu":")" + cpu +
                          R"(","memory":"4Gi","pods":"110"}}})");
    settle();
  }
  void put_pod(const std::string& name, const std::string& cpu = "1", const std::string& more = "") {
    client.put(kPod, R"({"metadata":{"name":")" + name +
                         R"(","namespace":"default"},"spec":{"containers":[{"name":"c","resources":
      {"requests":{"cpu":")" +
                         cpu + R"("}}}])" + more + "}}");
    settle();
  }
  std::string node_of(const std::string& name) {
    return std::string(get_string(client.find(kPod, {"default", name})->json(), "spec.nodeName"));
  }
  std::string condition(const std::string& name) {
    for (const json::value& condition : get_array(client.find(kPod, {"default", name})->json(), "status.conditions"))
      if (get_string(condition, "type") == "PodScheduled")
        return std::string(get_string(condition, "reason")) + ": " + std::string(get_string(condition, "message"));
    return "";
  }
};

TEST_F(SchedulerTest, binds_and_says_so) {
  put_node("4");
  start();
  put_pod("a");
  EXPECT_EQ(node_of("a"), "pi");
  EXPECT_EQ(events.take(), "Scheduled: Successfully assigned default/a to pi\n");
}

TEST_F(SchedulerTest, leaves_alone_what_is_not_its_own) {
  put_node("4");
  start();
  put_pod("other", "1", R"(,"schedulerName":"mine")");
  put_pod("gated", "1", R"(,"schedulingGates":[{"name":"wait"}])");
  EXPECT_EQ(node_of("other"), "");
  EXPECT_EQ(node_of("gated"), "");
  MUST(client.patch(kPod, {"default", "gated"}, PatchType::merge, {{"spec", {{"schedulingGates", json::array{}}}}}));
  settle();
  EXPECT_EQ(node_of("gated"), "pi");
}

TEST_F(SchedulerTest, tells_why_and_tries_again_when_room_is_made) {
  put_node("2");
  start();
  put_pod("first", "2");
  put_pod("second", "1");
  EXPECT_EQ(node_of("second"), "");
  EXPECT_EQ(condition("second").substr(0, 59), "Unschedulable: 0/1 nodes are available: 1 Insufficient cpu.");
  EXPECT_NE(events.take().find("FailedScheduling: 0/1 nodes are available: 1 Insufficient cpu."), std::string::npos);
  client.clear_calls();
  clock.advance(1h);
  settle();
  EXPECT_TRUE(client.calls().empty());  // nothing is polled
  client.erase(kPod, {"default", "first"});
  settle();
  EXPECT_EQ(node_of("second"), "pi");
}

TEST_F(SchedulerTest, a_finished_pod_leaves_room_and_a_node_that_changes_gives_hope) {
  put_node("1");
  start();
  put_pod("first", "1");
  put_pod("second", "1");
  clock.advance(10s);
  client.set_status(kPod, {"default", "first"}, R"({"phase":"Succeeded"})");
  settle();
  EXPECT_EQ(node_of("second"), "pi");
  put_pod("third", "2");
  EXPECT_EQ(node_of("third"), "");
  clock.advance(10s);
  put_node("4");
  EXPECT_EQ(node_of("third"), "pi");
}

TEST_F(SchedulerTest, two_pods_are_not_given_the_same_room) {
  put_node("3");
  start();
  for (const char* name : {"a", "b"})
    client.put(kPod, std::string(R"({"metadata":{"name":")") + name +
                         R"(","namespace":"default"},"spec":{"containers":[{"resources":
      {"requests":{"cpu":"2"}}}]}})");
  settle();
  EXPECT_NE(node_of("a").empty(), node_of("b").empty());
}

TEST_F(SchedulerTest, a_failed_binding_gives_the_room_back_and_is_tried_again) {
  put_node("2");
  start();
  client.fail(1, Error(Code::unavailable, "disk is full"), "act pods/binding");
  put_pod("a", "2");
  EXPECT_EQ(node_of("a"), "");
  EXPECT_NE(events.take().find("FailedScheduling: binding rejected: disk is full"), std::string::npos);
  clock.advance(1s);
  settle();
  EXPECT_EQ(node_of("a"), "pi");
}

}  // namespace
}  // namespace coracle::scheduler

// SPDX-License-Identifier: Apache-2.0
// The guarantees of WorkQueue, with a fake clock; one test uses real threads.
#include "daemon/queue/work_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace coracle {
namespace {

using namespace std::chrono_literals;

const Key a{"ns", "a"}, b{"ns", "b"};

std::string taken(WorkQueue& queue) {
  auto lease = queue.try_take();
  return lease ? lease->key().name : "";
}

TEST(WorkQueue, gives_keys_in_order_and_each_once) {
  WorkQueue queue;
  queue.add(b);
  queue.add(a);
  queue.add(b);
  EXPECT_EQ(queue.size(), 2u);
  EXPECT_EQ(taken(queue), "b");
  EXPECT_EQ(taken(queue), "a");
  EXPECT_EQ(taken(queue), "");
}

TEST(WorkQueue, a_key_added_while_worked_on_comes_once_more_afterwards) {
  WorkQueue queue;
  queue.add(a);
  {
    auto lease = queue.try_take();
    queue.add(a);
    queue.add(a);
    EXPECT_EQ(taken(queue), "");  // a key is never processed twice at once
  }
  EXPECT_EQ(taken(queue), "a");
  EXPECT_EQ(taken(queue), "");
}

TEST(WorkQueue, the_earliest_of_several_delays_counts) {
  FakeClock clock;
  WorkQueue queue({}, clock);
  queue.add_after(a, 10s);
  queue.add_after(a, 5s);
  queue.add_after(a, 20s);
  clock.advance(4s);
  EXPECT_EQ(taken(queue), "");
  clock.advance(1s);
  EXPECT_EQ(taken(queue), "a");
  clock.advance(1h);
  EXPECT_EQ(taken(queue), "");
}

TEST(WorkQueue, adding_now_makes_a_delay_moot) {
  FakeClock clock;
  WorkQueue queue({}, clock);
  queue.add_after(a, 10s);
  queue.add(a);
  EXPECT_EQ(taken(queue), "a");
  clock.advance(1h);
  EXPECT_EQ(taken(queue), "");
}

TEST(WorkQueue, all_that_is_delayed_can_be_made_due) {
  FakeClock clock;
  WorkQueue queue({1h, 1h}, clock);
  queue.add_after(a, 10h);
  queue.add_backed_off(b);
  queue.add_all_delayed();
  EXPECT_EQ(taken(queue), "b");
  EXPECT_EQ(taken(queue), "a");
  clock.advance(20h);
  EXPECT_EQ(taken(queue), "") << "once";
  queue.add(a);
  {
    auto lease = queue.try_take();
    queue.add_all_delayed();
  }
  EXPECT_EQ(taken(queue), "a") << "what is worked on may compute its delay by the old clock";
}

TEST(WorkQueue, backs_off_exponentially_until_forgotten) {
  FakeClock clock;
  WorkQueue queue({10ms, 100ms}, clock);
  for (auto delay : {10ms, 20ms, 40ms, 80ms, 100ms, 100ms}) {
    queue.add_backed_off(a);
    clock.advance(delay - 1ms);
    EXPECT_EQ(taken(queue), "") << delay.count();
    clock.advance(1ms);
    EXPECT_EQ(taken(queue), "a") << delay.count();
  }
  queue.forget(a);
  queue.add_backed_off(a);
  clock.advance(10ms);
  EXPECT_EQ(taken(queue), "a");
}

TEST(WorkQueue, a_failing_reconcile_comes_again_and_a_successful_one_when_it_asks) {
  FakeClock clock;
  WorkQueue queue({10ms, 1s}, clock);
  int calls = 0;
  Reconcile reconcile = [&](const Key&) -> Result<Outcome> {
    if (++calls == 1) return Error(Code::conflict, "somebody was faster");
    return Outcome{calls == 2 ? std::optional<std::chrono::nanoseconds>(5s) : std::nullopt};
  };
  auto run_once = [&] {
    if (auto lease = queue.try_take()) work_once(queue, lease->key(), "test", reconcile);
  };
  queue.add(a);
  run_once();
  EXPECT_EQ(calls, 1);
  clock.advance(10ms);
  run_once();
  EXPECT_EQ(calls, 2);
  clock.advance(4s);
  run_once();
  EXPECT_EQ(calls, 2);
  clock.advance(1s);
  run_once();
  EXPECT_EQ(calls, 3);
  clock.advance(1h);
  run_once();
  EXPECT_EQ(calls, 3);
}

TEST(WorkQueue, workers_never_share_a_key_and_stop_when_asked) {
  WorkQueue queue;
  std::atomic<int> at_once = 0, worst = 0, done = 0;
  Reconcile reconcile = [&](const Key&) -> Result<Outcome> {
    int now = ++at_once;
    int seen = worst;
    while (now > seen && !worst.compare_exchange_weak(seen, now)) {
    }
    std::this_thread::yield();
    --at_once;
    ++done;
    return Outcome{};
  };
  {
    std::vector<std::jthread> workers;
    for (int i = 0; i < 4; ++i) workers.emplace_back([&](std::stop_token stop) { run_worker(stop, queue, "test", reconcile); });
    for (int i = 0; i < 500; ++i) queue.add(a);
    while (queue.size() > 0) std::this_thread::yield();
  }  // all four stop, though the queue still exists
  EXPECT_EQ(worst, 1);
  EXPECT_GE(done, 1);
}

TEST(WorkQueue, a_delayed_key_wakes_a_waiting_worker) {
  WorkQueue queue;
  std::jthread later([&] { queue.add_after(a, 5ms); });
  auto lease = queue.take({});
  ASSERT_TRUE(lease);
  EXPECT_EQ(lease->key(), a);
}

TEST(WorkQueue, counts_what_becomes_of_keys_by_their_group) {
  using std::chrono::milliseconds;
  FakeClock clock;
  WorkQueue queue({}, clock, [](const Key& key) { return key.ns; });
  queue.add({"a", "1"});
  queue.add({"a", "1"});  // once
  queue.add({"a", "2"});
  queue.add({"b", "1"});
  EXPECT_EQ(queue.counts()["a"].adds, 2u);
  EXPECT_EQ(queue.counts()["a"].depth, 2u);
  clock.advance(milliseconds(500));
  {
    auto lease = queue.try_take();
    clock.advance(milliseconds(50));
    queue.add(lease->key());  // it is returned once more
    queue.add(lease->key());
    QueueCount now = queue.counts()["a"];
    EXPECT_EQ(now.depth, 1u);
    EXPECT_EQ(now.adds, 3u);
    EXPECT_NEAR(now.unfinished_seconds, 0.05, 1e-9);
    EXPECT_NEAR(now.longest_seconds, 0.05, 1e-9);
    EXPECT_EQ(now.waited.buckets[8], 1u) << "half a second";
    queue.add_backed_off(lease->key());
  }
  QueueCount now = queue.counts()["a"];
  EXPECT_EQ(now.depth, 2u);
  EXPECT_EQ(now.retries, 1u);
  EXPECT_EQ(now.worked.buckets[7], 1u) << "fifty milliseconds";
  EXPECT_NEAR(now.worked.seconds, 0.05, 1e-9);
  EXPECT_EQ(now.unfinished_seconds, 0);
  EXPECT_EQ(queue.counts()["b"].depth, 1u);
  EXPECT_TRUE(WorkQueue().counts().empty());
}

}  // namespace
}  // namespace coracle

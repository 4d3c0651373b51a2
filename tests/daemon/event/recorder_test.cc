// SPDX-License-Identifier: Apache-2.0
// Event aggregation: repetitions are counted, bursts are combined and rate limited.
#include "daemon/event/recorder.h"

#include <gtest/gtest.h>

namespace coracle {
namespace {

using namespace std::chrono_literals;

EventRecord record(const std::string& message, const std::string& name = "web") {
  return {true, "Failed", message, "node", "pi", {"v1", "Pod", "default", name, "uid-" + name, "7", "spec.containers{a}"}};
}

TEST(EventAggregator, the_first_is_created_whole) {
  EventAggregator aggregator;
  FakeClock clock;
  auto write = aggregator.write(record("no image"), clock.now());
  ASSERT_TRUE(write && write->create);
  EXPECT_EQ(write->key.ns, "default");
  EXPECT_EQ(write->key.name.substr(0, 4), "web.");
  const json::value& event = write->body;
  EXPECT_EQ(get_string(event, "metadata.name"), write->key.name);
  EXPECT_EQ(get_string(event, "involvedObject.uid"), "uid-web");
  EXPECT_EQ(get_string(event, "involvedObject.fieldPath"), "spec.containers{a}");
  EXPECT_EQ(get_string(event, "type"), "Warning");
  EXPECT_EQ(get_string(event, "source.host"), "pi");
  EXPECT_EQ(get_string(event, "firstTimestamp"), format_time(clock.now()));
  EXPECT_EQ(get_int(event, "count"), 1);
}

TEST(EventAggregator, events_about_cluster_scoped_objects_live_in_default) {
  EventAggregator aggregator;
  EventRecord about_node = record("low on disk");
  about_node.about.ns = "";
  EXPECT_EQ(aggregator.write(about_node, WallTime(1s))->key.ns, "default");
}

TEST(EventAggregator, a_repetition_is_counted_until_its_event_is_gone) {
  EventAggregator aggregator;
  FakeClock clock;
  Key first = aggregator.write(record("no image"), clock.now())->key;
  clock.advance(5s);
  auto again = aggregator.write(record("no image"), clock.now());
  ASSERT_TRUE(again && !again->create);
  EXPECT_EQ(again->key, first);
  EXPECT_EQ(get_int(again->body, "count"), 2);
  EXPECT_EQ(get_string(again->body, "lastTimestamp"), format_time(clock.now()));
  EXPECT_TRUE(aggregator.write(record("no image", "other"), clock.now())->create);
  aggregator.forget(*again);
  clock.advance(1s);
  auto fresh = aggregator.write(record("no image"), clock.now());
  EXPECT_TRUE(fresh->create);
  EXPECT_NE(fresh->key, first);
}

TEST(EventAggregator, many_similar_messages_become_one) {
  EventAggregator aggregator;
  FakeClock clock;
  std::optional<EventAggregator::Write> write;
  for (int i = 0; i < kEventsSimilarMax; ++i) {
    write = aggregator.write(record("attempt " + std::to_string(i)), clock.now());
    EXPECT_TRUE(write->create);
    clock.advance(1s);
  }
  write = aggregator.write(record("attempt x"), clock.now());
  EXPECT_TRUE(write->create);
  EXPECT_EQ(get_string(write->body, "message"), "(combined from similar events): attempt x");
  write = aggregator.write(record("attempt y"), clock.now());
  EXPECT_FALSE(write->create);
  EXPECT_EQ(get_string(write->body, "message"), "(combined from similar events): attempt y");
  clock.advance(kEventsSimilarSpan + 1s);
  EXPECT_EQ(get_string(aggregator.write(record("attempt z"), clock.now())->body, "message"), "attempt z");
}

TEST(EventAggregator, an_object_that_cannot_stop_talking_is_limited) {
  EventAggregator aggregator;
  FakeClock clock;
  int written = 0;
  for (int i = 0; i < 100; ++i) written += aggregator.write(record("again"), clock.now()).has_value();
  EXPECT_EQ(written, int(kEventsBurst));
  EXPECT_TRUE(aggregator.write(record("again", "other"), clock.now()));
  clock.advance(kEventsRefill);
  EXPECT_TRUE(aggregator.write(record("again"), clock.now()));
  EXPECT_FALSE(aggregator.write(record("again"), clock.now()));
}

TEST(EventAggregator, its_memory_is_bounded) {
  EventAggregator aggregator;
  for (size_t i = 0; i < 2 * kEventsRememberedMax; ++i)
    EXPECT_TRUE(aggregator.write(record("no image", "pod" + std::to_string(i)), WallTime(1s))->create);
  EXPECT_TRUE(aggregator.write(record("no image", "pod0"), WallTime(2s))->create);  // long expired
}

}  // namespace
}  // namespace coracle

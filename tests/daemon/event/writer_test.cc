// SPDX-License-Identifier: Apache-2.0
// The thread that writes events: every posted event arrives, repetitions are counted, also after a failed call.
#include <gtest/gtest.h>

#include <thread>

#include "daemon/event/recorder.h"
#include "store/object/object.h"
#include "tests/store/client/fake_client.h"

namespace coracle {
namespace {

struct EventWriterTest : testing::Test {
  FakeClient client;
  ObjectPtr pod = client.put(kPod, R"({"metadata":{"name":"web","namespace":"team","uid":"u"},"spec":{}})");

  // Waits for an event with this message and count; the writer runs on its own thread.
  json::value await(std::string_view message, int64_t count) {
    for (auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60); std::chrono::steady_clock::now() < end;
         std::this_thread::yield())
      for (const ObjectPtr& event : client.all(kEvent))
        if (get_string(event->json(), "message") == message && get_int(event->json(), "count") == count) return event->json();
    ADD_FAILURE() << "never seen: " << message;
    return {};
  }
};

TEST_F(EventWriterTest, writes_once_and_counts) {
  EventWriter writer(client);
  EventRecorder recorder(writer, "kubelet", "pi");
  for (int i = 0; i < 3; ++i) recorder.warning(*pod, "BackOff", "again and again", "spec.containers{web}");
  json::value event = await("again and again", 3);
  EXPECT_EQ(get_string(event, "reason"), "BackOff");
  EXPECT_EQ(get_string(event, "source.component"), "kubelet");
  EXPECT_EQ(get_string(event, "involvedObject.kind"), "Pod");
  EXPECT_EQ(get_string(event, "metadata.namespace"), "team");
  EXPECT_EQ(client.all(kEvent).size(), 1u);
  for (const ObjectPtr& old : client.all(kEvent)) client.erase(kEvent, old->key());  // older than an hour
  recorder.warning(*pod, "BackOff", "again and again", "spec.containers{web}");
  await("again and again", 1);
}

TEST_F(EventWriterTest, a_refused_event_does_not_keep_the_next_ones) {
  client.fail(1, Error(Code::forbidden, "namespace is being terminated"), "create events");
  EventWriter writer(client);
  EventRecorder recorder(writer, "scheduler");
  recorder.normal(*pod, "First", "lost");
  recorder.normal(*pod, "Second", "kept");
  await("kept", 1);
  EXPECT_EQ(client.all(kEvent).size(), 1u);
}

}  // namespace
}  // namespace coracle

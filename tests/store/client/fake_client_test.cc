// SPDX-License-Identifier: Apache-2.0
// Faults of the fake happen exactly when and where they were requested.
#include "tests/store/client/fake_client.h"

#include <gtest/gtest.h>

#include "tests/store/client/recording_sink.h"

namespace coracle {
namespace {

TEST(FakeClient, fails_on_the_nth_call) {
  FakeClient client;
  client.put(kConfigMap, R"({"metadata":{"name":"a"}})");
  client.fail(2, Error(Code::unavailable, "no"), "get");
  EXPECT_TRUE(client.get(kConfigMap, {"default", "a"}));
  EXPECT_TRUE(client.list(kConfigMap, {}));
  EXPECT_EQ(client.get(kConfigMap, {"default", "a"}).error().code(), Code::unavailable);
  EXPECT_TRUE(client.get(kConfigMap, {"default", "a"}));
  EXPECT_EQ(client.calls().at(1), "list configmaps");
  EXPECT_EQ(client.calls().at(2), "get configmaps default/a");
}

TEST(FakeClient, loses_an_event) {
  FakeClient client;
  RecordingSink sink;
  auto watch = MUST(client.watch(kConfigMap, {}, sink));
  client.lose_event(2);
  for (const char* body : {R"({"metadata":{"name":"a"}})", R"({"metadata":{"name":"b"}})", R"({"metadata":{"name":"c"}})"})
    client.put(kConfigMap, body);
  client.settle();
  EXPECT_EQ(sink.wait_names(3), (std::vector<std::string>{"synced", "added a", "added c"}));
}

TEST(FakeClient, ends_watches) {
  FakeClient client;
  RecordingSink sink;
  auto watch = MUST(client.watch(kConfigMap, {}, sink));
  client.end_watches(Error(Code::unavailable, "connection lost"));
  EXPECT_EQ(sink.wait_end()->code(), Code::unavailable);
}

TEST(FakeClient, sets_status_and_erases) {
  FakeClient client;
  client.put(kPod, R"({"metadata":{"name":"p","uid":"given"},"spec":{}})");
  client.set_status(kPod, {"default", "p"}, R"({"phase":"Running"})");
  EXPECT_EQ(get_string(client.find(kPod, {"default", "p"})->json(), "status.phase"), "Running");
  EXPECT_EQ(client.find(kPod, {"default", "p"})->uid(), "given");
  client.erase(kPod, {"default", "p"});
  EXPECT_EQ(client.find(kPod, {"default", "p"}), nullptr);
  EXPECT_TRUE(client.all(kPod).empty());
}

}  // namespace
}  // namespace coracle

// SPDX-License-Identifier: Apache-2.0
// The scheduling gate coracle.io/after: when the controller removes it, and what it reports meanwhile.
#include "tests/daemon/controller/bench.h"

namespace coracle::controller {
namespace {

struct StartOrder : Bench {
  void waiter(const std::string& after) {
    client.put(kPod, R"({"metadata":{"name":"waiter","namespace":"default","annotations":{"coracle.io/after":")" + after +
                         R"("}},"spec":{"schedulingGates":[{"name":"coracle.io/after"},{"name":"another"}]}})");
    settle();
  }
  std::string gates() {
    std::string out;
    for (const json::value& gate : get_array(client.find(kPod, {"default", "waiter"})->json(), "spec.schedulingGates"))
      out.append(get_string(gate, "name")).append(" ");
    return out;
  }
  std::string said() {
    const json::value* condition =
        find_condition(get_array(client.find(kPod, {"default", "waiter"})->json(), "status.conditions"), "PodScheduled");
    return condition ? std::string(get_string(*condition, "message")) : "";
  }
};

TEST_F(StartOrder, opens_when_all_are_available_and_leaves_other_gates) {
  start();
  waiter("pod/db");
  EXPECT_EQ(gates(), "coracle.io/after another ");
  EXPECT_EQ(said(), "coracle.io/after: waiting for pod/db: not found");
  EXPECT_TRUE(events.has("WaitingForUnknown", "pod/db: not found"));
  client.put(kPod, R"({"metadata":{"name":"db","namespace":"default"},"spec":{"nodeName":"pi"}})");
  settle();
  EXPECT_EQ(said(), "coracle.io/after: waiting for pod/db: not ready");
  EXPECT_TRUE(events.has("WaitingForOthers", "pod/db: not ready"));
  play_kubelet([](const Object& pod) { return pod.name() == "db"; });
  EXPECT_EQ(gates(), "another ");
}

TEST_F(StartOrder, says_it_once) {
  start();
  waiter("pod/db");
  events.take();
  client.clear_calls();
  client.put(kPod, R"({"metadata":{"name":"unrelated","namespace":"default"},"spec":{"nodeName":"pi"}})");
  settle();
  EXPECT_TRUE(events.take().empty());
  for (const std::string& call : client.calls()) EXPECT_FALSE(call.find("waiter") != call.npos) << call;
}

TEST_F(StartOrder, reports_who_waits_for_himself) {
  start();
  client.put(kPod, R"({"metadata":{"name":"other","namespace":"default","annotations":{"coracle.io/after":"pod/waiter"}},
    "spec":{"schedulingGates":[{"name":"coracle.io/after"}]}})");
  waiter("pod/other");
  EXPECT_EQ(said(), "coracle.io/after: waits for itself: pod/waiter → pod/other → pod/waiter");
  EXPECT_TRUE(events.has("StartOrderCycle", "pod/waiter → pod/other → pod/waiter"));
}

TEST_F(StartOrder, an_annotation_taken_away_opens_the_gate) {
  start();
  waiter("pod/db");
  MUST(client.patch(kPod, {"default", "waiter"}, PatchType::merge,
                    {{"metadata", {{"annotations", {{"coracle.io/after", nullptr}}}}}}));
  settle();
  EXPECT_EQ(gates(), "another ");
}

TEST_F(StartOrder, a_write_that_fails_comes_again) {
  start();
  client.put(kPod, R"({"metadata":{"name":"db","namespace":"default"},"spec":{"nodeName":"pi"}})");
  play_kubelet();
  client.fail(1, Error(Code::unavailable, "disk is full"), "patch pods default/waiter");
  waiter("pod/db");
  EXPECT_EQ(gates(), "coracle.io/after another ");
  pass(std::chrono::seconds(1));
  EXPECT_EQ(gates(), "another ");
}

}  // namespace
}  // namespace coracle::controller

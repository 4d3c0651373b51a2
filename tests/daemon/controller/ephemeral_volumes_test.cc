// SPDX-License-Identifier: Apache-2.0
// The claims of generic ephemeral volumes: whose they are, and what is said when there is none.
#include "tests/daemon/controller/bench.h"

namespace coracle::controller {
namespace {

struct EphemeralVolumesTest : Bench {
  void put_pod(
      const std::string& volumes = R"({"name":"scratch","ephemeral":{"volumeClaimTemplate":{"metadata":{"labels":{"a":"b"},
    "annotations":{"c":"d"}},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}}})") {
    client.put(kPod, R"({"metadata":{"namespace":"default","name":"web","uid":"uid-web"},"spec":{"nodeName":"pi","volumes":[)" +
                         volumes + R"(]},"status":{"phase":"Pending"}})");
    settle();
  }
  ObjectPtr claim(const std::string& name = "web-scratch") { return client.find(kPersistentVolumeClaim, {"default", name}); }
  std::string told() {  // about the pod
    std::string out;
    for (const EventRecord& event : events.take())
      if (event.component == "ephemeral_volume") out += event.reason + ": " + event.message + "\n";
    return out;
  }
};

TEST_F(EphemeralVolumesTest, a_pod_gets_a_claim_of_its_own) {
  start();
  put_pod();
  ASSERT_TRUE(claim());
  const json::value made = claim()->json();
  const json::array& owners = get_array(made, "metadata.ownerReferences");
  ASSERT_EQ(owners.size(), 1u);
  EXPECT_EQ(get_string(owners[0], "kind"), "Pod");
  EXPECT_EQ(get_string(owners[0], "uid"), "uid-web");
  EXPECT_EQ(owners[0].at("controller"), json::value(true));
  EXPECT_EQ(owners[0].at("blockOwnerDeletion"), json::value(true));
  EXPECT_EQ(get_string(made, "metadata.labels.a"), "b");
  EXPECT_EQ(get_string(made, "metadata.annotations.c"), "d");
  EXPECT_EQ(get_string(made, "spec.resources.requests.storage"), "1Gi");
  EXPECT_EQ(told(), "");
  client.erase(kPersistentVolumeClaim, {"default", "web-scratch"});
  settle();
  EXPECT_TRUE(claim()) << "it is needed still";
}

TEST_F(EphemeralVolumesTest, the_claim_of_another_is_not_taken_and_that_is_said) {
  start();
  client.put(kPersistentVolumeClaim, R"({"metadata":{"namespace":"default","name":"web-scratch","uid":"uid-other"},"spec":{}})");
  put_pod(R"({"name":"scratch","ephemeral":{"volumeClaimTemplate":{"spec":{}}}},
    {"name":"more","ephemeral":{"volumeClaimTemplate":{"spec":{}}}})");
  const std::string why =
      "FailedBinding: ephemeral volume scratch: PVC default/web-scratch was not created for pod default/web (pod is not owner)\n";
  EXPECT_EQ(told(), why);
  EXPECT_EQ(claim()->uid(), "uid-other");
  EXPECT_TRUE(claim("web-more")) << "the other volumes have nothing to do with it";
  pass(std::chrono::seconds(60));
  EXPECT_EQ(told(), "") << "once is enough";
  clock.advance(std::chrono::minutes(45));
  settle();
  EXPECT_EQ(told(), why) << "events do not last";
  client.erase(kPersistentVolumeClaim, {"default", "web-scratch"});
  settle();
  ASSERT_TRUE(claim());
  EXPECT_EQ(claim()->controller()->uid, "uid-web");
}

TEST_F(EphemeralVolumesTest, a_claim_that_cannot_be_made_is_said_and_tried_again) {
  start();
  client.fail(1, Error(Code::invalid, "storageClassName: too long"), "create persistentvolumeclaims");
  put_pod();
  EXPECT_EQ(told(), "FailedBinding: ephemeral volume scratch: create PVC web-scratch: storageClassName: too long\n");
  pass(std::chrono::seconds(2));
  EXPECT_TRUE(claim());
}

}  // namespace
}  // namespace coracle::controller

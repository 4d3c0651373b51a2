// SPDX-License-Identifier: Apache-2.0
// NodeRestriction and TaintNodesByCondition: what a node may do, and how a new one begins.
#include "tests/daemon/admission/house.h"

namespace coracle::admission {
namespace {

constexpr const char* kMe = "system:node:me";
const std::string kMirrored = R"(,"annotations":{"kubernetes.io/config.mirror":"x"})";

std::string owned(const std::string& uid, const std::string& name = "me") {
  return kMirrored + R"(,"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":")" + name + R"(","uid":")" + uid +
         R"(","controller":true}])";
}

class NodeRestrictionTest : public testing::Test {
 protected:
  NodeRestrictionTest() {
    node = MUST(house.put(R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"me"}})"));
    MUST(house.put(House::pod("mine", "", R"(,"nodeName":"me")")));
    MUST(house.put(House::pod("theirs", "", R"(,"nodeName":"you")")));
    static const User asker{kMe, "", {"system:nodes"}, {}};
    writer.user = &asker;
  }
  std::string why(const Result<registry::Written>& result) { return result ? "allowed" : result.error().text(); }
  House house;
  ObjectPtr node;
  registry::Writer writer;
};

TEST_F(NodeRestrictionTest, makes_mirrors_of_its_own_pods_only) {
  struct Row {
    std::string pod, says;
  };
  const Row rows[] = {
      {House::pod("p", "", R"(,"nodeName":"me")"),
       "pods \"p\" is forbidden: pod does not have \"kubernetes.io/config.mirror\" annotation, node \"me\" can only create "
       "mirror pods"},
      {House::pod("p", "", R"(,"nodeName":"you")", kMirrored),
       "pods \"p\" is forbidden: node \"me\" can only create pods with spec.nodeName set to itself"},
      {House::pod("p", "", R"(,"nodeName":"me")", kMirrored),
       "pods \"p\" is forbidden: node \"me\" can only create pods with an owner reference set to itself"},
      {House::pod("p", "", R"(,"nodeName":"me")", owned("x", "you")),
       "pods \"p\" is forbidden: node \"me\" can only create pods with an owner reference set to itself"},
      {House::pod("p", "", R"(,"nodeName":"me")", owned("wrong")),
       "pods \"p\" is forbidden: node me UID mismatch: expected wrong got " + node->uid()},
      {House::pod("p", R"(,"envFrom":[{"configMapRef":{"name":"x"}}])", R"(,"nodeName":"me")", owned(node->uid())),
       "pods \"p\" is forbidden: node \"me\" can not create pods that reference configmaps"},
      {House::pod("p", "", R"(,"nodeName":"me","volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"x"}}])",
                  owned(node->uid())),
       "pods \"p\" is forbidden: node \"me\" can not create pods that reference persistentvolumeclaims"},
      {House::pod("p", "", R"(,"nodeName":"me")", owned(node->uid())), "admitted"},
  };
  for (const Row& row : rows) EXPECT_EQ(house.refusal(row.pod, kMe), row.says);
}

TEST_F(NodeRestrictionTest, writes_and_removes_what_runs_on_it) {
  json::value status = json::object{{"status", json::object{{"phase", "Running"}}}};
  EXPECT_EQ(why(house.registry().patch(kPod, {"default", "mine"}, "status", PatchType::merge, status, false, writer)), "allowed");
  EXPECT_EQ(why(house.registry().patch(kPod, {"default", "theirs"}, "status", PatchType::merge, status, false, writer)),
            "pods \"theirs\" is forbidden: node \"me\" can only update pod status for pods with spec.nodeName set to itself");
  EXPECT_EQ(why(house.registry().patch(kPod, {"default", "mine"}, {}, PatchType::merge,
                                       House::parse(R"({"metadata":{"labels":{"a":"b"}}})"), false, writer)),
            "pods \"mine\" is forbidden: unexpected operation \"UPDATE\", node \"me\" can only create and delete mirror pods");
  EXPECT_EQ(house.registry().remove(kPod, {"default", "theirs"}, {}, writer).error().text(),
            "pods \"theirs\" is forbidden: node \"me\" can only delete pods with spec.nodeName set to itself");
  EXPECT_TRUE(house.registry().remove(kPod, {"default", "mine"}, {}, writer));
  EXPECT_EQ(house.registry().act(kPod, {"default", "theirs"}, "eviction", json::object(), writer).error().text(),
            "pods \"theirs\" is forbidden: node me can only evict pods with spec.nodeName set to itself");
}

TEST_F(NodeRestrictionTest, says_of_itself_what_draws_no_pods) {
  auto label = [&](const char* name, const char* patch) {
    return why(house.registry().patch(kNode, {"", name}, {}, PatchType::merge, House::parse(patch), false, writer));
  };
  EXPECT_EQ(label("me", R"({"metadata":{"labels":{"kubernetes.io/hostname":"me","example.com/disk":"ssd"}}})"), "allowed");
  EXPECT_EQ(label("me", R"({"metadata":{"labels":{"node-restriction.kubernetes.io/secure":"yes","foo.k8s.io/x":"y"}}})"),
            "nodes \"me\" is forbidden: is not allowed to modify labels: foo.k8s.io/x, node-restriction.kubernetes.io/secure");
  EXPECT_EQ(label("me", R"({"spec":{"taints":[]}})"), "nodes \"me\" is forbidden: node \"me\" is not allowed to modify taints");
  EXPECT_EQ(label("you", R"({"metadata":{}})"), "nodes \"you\" not found");
  EXPECT_EQ(house.refusal(R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"you"}})", kMe),
            "nodes \"you\" is forbidden: node \"me\" is not allowed to modify node \"you\"");
}

TEST_F(NodeRestrictionTest, holds_its_own_lease_and_its_pods_tokens) {
  auto lease = [](const char* name, const char* ns) {
    return R"({"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":")" + std::string(name) +
           R"(","namespace":")" + ns + R"("}})";
  };
  EXPECT_EQ(house.refusal(lease("me", "default"), kMe),
            "leases.coordination.k8s.io \"me\" is forbidden: can only access leases in the \"kube-node-lease\" system namespace");
  EXPECT_EQ(
      house.refusal(lease("you", "kube-node-lease"), kMe),
      "leases.coordination.k8s.io \"you\" is forbidden: can only access node lease with the same name as the requesting node");
  EXPECT_EQ(house.refusal(lease("me", "kube-node-lease"), kMe), "admitted");
  auto token = [&](const char* pod) {
    ObjectPtr there = MUST(house.registry().get(kPod, {"default", pod}));
    json::value body = json::object{
        {"spec", json::object{{"boundObjectRef",
                               json::object{{"apiVersion", "v1"}, {"kind", "Pod"}, {"name", pod}, {"uid", there->uid()}}}}}};
    return house.registry().act(kServiceAccount, {"default", "default"}, "token", body, writer).error().text();
  };
  EXPECT_EQ(token("theirs"),
            "serviceaccounts \"default\" is forbidden: node requested token bound to a pod scheduled on a different node");
  EXPECT_EQ(token("mine"), "no token can be issued: there is no signing key") << "admission lets it pass";
  EXPECT_EQ(house.registry().act(kServiceAccount, {"default", "default"}, "token", json::object(), writer).error().text(),
            "serviceaccounts \"default\" is forbidden: node requested token not bound to a pod");
}

TEST(TaintNodesByCondition, a_new_node_takes_no_pods_yet) {
  House house;
  ObjectPtr node = MUST(house.put(R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"n"}})"));
  const json::array& taints = get_array(node->json(), "spec.taints");
  ASSERT_EQ(taints.size(), 1u);
  EXPECT_EQ(get_string(taints[0], "key"), "node.kubernetes.io/not-ready");
  EXPECT_EQ(get_string(taints[0], "effect"), "NoSchedule");
}

}  // namespace
}  // namespace coracle::admission

// SPDX-License-Identifier: Apache-2.0
// NodeRestriction and TaintNodesByCondition: what a node may do, and the taints of a new node.
#include "tests/daemon/admission/admission_fixture.h"

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
    node = MUST(fixture.put(R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"me"}})"));
    MUST(fixture.put(AdmissionFixture::pod("mine", "", R"(,"nodeName":"me")")));
    MUST(fixture.put(AdmissionFixture::pod("theirs", "", R"(,"nodeName":"you")")));
    static const User asker{kMe, "", {"system:nodes"}, {}};
    writer.user = &asker;
  }
  std::string why(const Result<registry::Written>& result) { return result ? "allowed" : result.error().text(); }
  AdmissionFixture fixture;
  ObjectPtr node;
  registry::Writer writer;
};

TEST_F(NodeRestrictionTest, makes_mirrors_of_its_own_pods_only) {
  struct Row {
    std::string pod, says;
  };
  const Row rows[] = {
      {AdmissionFixture::pod("p", "", R"(,"nodeName":"me")"),
       "pods \"p\" is forbidden: pod does not have \"kubernetes.io/config.mirror\" annotation, node \"me\" can only create "
       "mirror pods"},
      {AdmissionFixture::pod("p", "", R"(,"nodeName":"you")", kMirrored),
       "pods \"p\" is forbidden: node \"me\" can only create pods with spec.nodeName set to itself"},
      {AdmissionFixture::pod("p", "", R"(,"nodeName":"me")", kMirrored),
       "pods \"p\" is forbidden: node \"me\" can only create pods with an owner reference set to itself"},
      {AdmissionFixture::pod("p", "", R"(,"nodeName":"me")", owned("x", "you")),
       "pods \"p\" is forbidden: node \"me\" can only create pods with an owner reference set to itself"},
      {AdmissionFixture::pod("p", "", R"(,"nodeName":"me")", owned("wrong")),
       "pods \"p\" is forbidden: node me UID mismatch: expected wrong got " + node->uid()},
      {AdmissionFixture::pod("p", R"(,"envFrom":[{"configMapRef":{"name":"x"}}])", R"(,"nodeName":"me")", owned(node->uid())),
       "pods \"p\" is forbidden: node \"me\" can not create pods that reference configmaps"},
      {AdmissionFixture::pod("p", "", R"(,"nodeName":"me","volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"x"}}])",
                             owned(node->uid())),
       "pods \"p\" is forbidden: node \"me\" can not create pods that reference persistentvolumeclaims"},
      {AdmissionFixture::pod("p", "", R"(,"nodeName":"me")", owned(node->uid())), "admitted"},
  };
  for (const Row& row : rows) EXPECT_EQ(fixture.refusal(row.pod, kMe), row.says);
}

TEST_F(NodeRestrictionTest, writes_and_removes_what_runs_on_it) {
  json::value status = json::object{{"status", json::object{{"phase", "Running"}}}};
  EXPECT_EQ(why(fixture.registry().patch(kPod, {"default", "mine"}, "status", PatchType::merge, status, false, writer)),
            "allowed");
  EXPECT_EQ(why(fixture.registry().patch(kPod, {"default", "theirs"}, "status", PatchType::merge, status, false, writer)),
            "pods \"theirs\" is forbidden: node \"me\" can only update pod status for pods with spec.nodeName set to itself");
  EXPECT_EQ(why(fixture.registry().patch(kPod, {"default", "mine"}, {}, PatchType::merge,
                                         AdmissionFixture::parse(R"({"metadata":{"labels":{"a":"b"}}})"), false, writer)),
            "pods \"mine\" is forbidden: unexpected operation \"UPDATE\", node \"me\" can only create and delete mirror pods");
  EXPECT_EQ(fixture.registry().remove(kPod, {"default", "theirs"}, {}, writer).error().text(),
            "pods \"theirs\" is forbidden: node \"me\" can only delete pods with spec.nodeName set to itself");
  EXPECT_TRUE(fixture.registry().remove(kPod, {"default", "mine"}, {}, writer));
  EXPECT_EQ(fixture.registry().create_subresource(kPod, {"default", "theirs"}, "eviction", json::object(), writer).error().text(),
            "pods \"theirs\" is forbidden: node me can only evict pods with spec.nodeName set to itself");
}

// Source: apiserver registry/generic/registry/store.go: what terminates in its own time is returned before admission.
TEST_F(NodeRestrictionTest, may_ask_again_for_what_terminates_already) {
  const Key theirs{"default", "theirs"};
  registry::Writer dry = writer;
  dry.dry_run = true;
  auto remove = [&](std::optional<int64_t> grace, const registry::Writer& who) {
    DeleteOptions options;
    options.grace_period_seconds = grace;
    auto removed = fixture.registry().remove(kPod, theirs, options, who);
    return !removed ? removed.error().text() : removed->gone ? "gone" : "there";
  };
  const std::string refused = "pods \"theirs\" is forbidden: node \"me\" can only delete pods with spec.nodeName set to itself";
  for (const registry::Writer& who : {dry, writer}) EXPECT_EQ(remove({}, who), refused);
  MUST(fixture.registry().patch(kPod, theirs, {}, PatchType::merge,
                                AdmissionFixture::parse(R"({"metadata":{"finalizers":["example.com/f"]}})"), false, {}));
  EXPECT_EQ(remove(20, {}), "there");
  for (const registry::Writer& who : {dry, writer}) {
    EXPECT_EQ(remove({}, who), "there");
    EXPECT_EQ(remove(20, who), "there");
    EXPECT_EQ(remove(10, who), refused) << "that is sooner";
  }
  EXPECT_EQ(remove(0, {}), "there");
  for (const registry::Writer& who : {dry, writer}) EXPECT_EQ(remove({}, who), refused) << "a finalizer holds it";
}

TEST_F(NodeRestrictionTest, says_of_itself_what_draws_no_pods) {
  auto label = [&](const char* name, const char* patch) {
    return why(fixture.registry().patch(kNode, {"", name}, {}, PatchType::merge, AdmissionFixture::parse(patch), false, writer));
  };
  EXPECT_EQ(label("me", R"({"metadata":{"labels":{"kubernetes.io/hostname":"me","example.com/disk":"ssd"}}})"), "allowed");
  EXPECT_EQ(label("me", R"({"metadata":{"labels":{"node-restriction.kubernetes.io/secure":"yes","foo.k8s.io/x":"y"}}})"),
            "nodes \"me\" is forbidden: is not allowed to modify labels: foo.k8s.io/x, node-restriction.kubernetes.io/secure");
  EXPECT_EQ(label("me", R"({"spec":{"taints":[]}})"), "nodes \"me\" is forbidden: node \"me\" is not allowed to modify taints");
  EXPECT_EQ(label("me", R"({"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"gone","uid":"u"}]}})"),
            "nodes \"me\" is forbidden: node \"me\" is not allowed to modify ownerReferences")
      << "the garbage collector would delete the node, which could come back without its taints";
  EXPECT_EQ(
      why(fixture.registry().patch(
          kNode, {"", "me"}, "status", PatchType::merge,
          AdmissionFixture::parse(R"({"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"x","uid":"u"}]}})"),
          false, writer)),
      "nodes \"me\" is forbidden: node \"me\" is not allowed to modify ownerReferences");
  EXPECT_EQ(label("you", R"({"metadata":{}})"), "nodes \"you\" not found");
  EXPECT_EQ(fixture.refusal(R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"you"}})", kMe),
            "nodes \"you\" is forbidden: node \"me\" is not allowed to modify node \"you\"");
}

TEST_F(NodeRestrictionTest, holds_its_own_lease_and_its_pods_tokens) {
  auto lease = [](const char* name, const char* ns) {
    return R"({"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":")" + std::string(name) +
           R"(","namespace":")" + ns + R"("}})";
  };
  EXPECT_EQ(fixture.refusal(lease("me", "default"), kMe),
            "leases.coordination.k8s.io \"me\" is forbidden: can only access leases in the \"kube-node-lease\" system namespace");
  EXPECT_EQ(
      fixture.refusal(lease("you", "kube-node-lease"), kMe),
      "leases.coordination.k8s.io \"you\" is forbidden: can only access node lease with the same name as the requesting node");
  EXPECT_EQ(fixture.refusal(lease("me", "kube-node-lease"), kMe), "admitted");
  auto token = [&](const char* pod) {
    ObjectPtr there = MUST(fixture.registry().get(kPod, {"default", pod}));
    json::value body = json::object{
        {"spec", json::object{{"boundObjectRef",
                               json::object{{"apiVersion", "v1"}, {"kind", "Pod"}, {"name", pod}, {"uid", there->uid()}}}}}};
    return fixture.registry().create_subresource(kServiceAccount, {"default", "default"}, "token", body, writer).error().text();
  };
  EXPECT_EQ(token("theirs"),
            "serviceaccounts \"default\" is forbidden: node requested token bound to a pod scheduled on a different node");
  EXPECT_EQ(token("mine"), "no token can be issued: there is no signing key") << "admission lets it pass";
  EXPECT_EQ(fixture.registry()
                .create_subresource(kServiceAccount, {"default", "default"}, "token", json::object(), writer)
                .error()
                .text(),
            "serviceaccounts \"default\" is forbidden: node requested token not bound to a pod");
}

TEST_F(NodeRestrictionTest, a_new_node_has_no_owner) {
  MUST(fixture.registry().remove(kNode, {"", "me"}, {}, {}));
  EXPECT_EQ(fixture.refusal(R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"me","ownerReferences":[
                {"apiVersion":"v1","kind":"ConfigMap","name":"gone","uid":"u"}]}})",
                            kMe),
            "nodes \"me\" is forbidden: node \"me\" is not allowed to set ownerReferences");
}

TEST_F(NodeRestrictionTest, gets_tokens_for_those_whom_its_pods_talk_to) {
  MUST(fixture.put(R"({"apiVersion":"storage.k8s.io/v1","kind":"CSIDriver","metadata":{"name":"d.example.com"},
                     "spec":{"tokenRequests":[{"audience":"disks"}]}})"));
  MUST(
      fixture.put(AdmissionFixture::pod("vault", "",
                                        R"(,"nodeName":"me","volumes":[{"name":"t","projected":{"sources":[{"serviceAccountToken":
                               {"path":"t","audience":"vault"}}]}},{"name":"d","csi":{"driver":"d.example.com"}}])")));
  ObjectPtr pod = MUST(fixture.registry().get(kPod, {"default", "vault"}));
  auto token = [&](json::array audiences) {
    json::value body = json::object{
        {"spec", json::object{{"audiences", std::move(audiences)},
                              {"boundObjectRef",
                               json::object{{"apiVersion", "v1"}, {"kind", "Pod"}, {"name", "vault"}, {"uid", pod->uid()}}}}}};
    return fixture.registry().create_subresource(kServiceAccount, {"default", "default"}, "token", body, writer).error().text();
  };
  constexpr const char* kPasses = "no token can be issued: there is no signing key";
  EXPECT_EQ(token({}), kPasses) << "the API's own, which its service account's volume projects";
  EXPECT_EQ(token({"vault"}), kPasses);
  EXPECT_EQ(token({"disks"}), kPasses);
  EXPECT_EQ(token({"bank"}), "serviceaccounts \"default\" is forbidden: audience \"bank\" not found in pod spec volume");
  EXPECT_EQ(token({"vault", "bank"}), "serviceaccounts \"default\" is forbidden: node may only request 0 or 1 audiences");
}

TEST_F(NodeRestrictionTest, writes_slices_of_its_own_devices_only) {
  auto slice = [](const char* name, const char* node) {
    return R"({"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{"name":")" + std::string(name) +
           R"("},"spec":{"driver":"d.example.com","nodeName":")" + node + R"(","pool":{"name":"p","resourceSliceCount":1}}})";
  };
  EXPECT_EQ(fixture.refusal(slice("a", "you"), kMe),
            "resourceslices.resource.k8s.io \"a\" is forbidden: can only create "
            "ResourceSlice with the same NodeName as the requesting node");
  EXPECT_EQ(fixture.refusal(slice("a", "me"), kMe), "admitted");
  MUST(fixture.put(slice("b", "you")));
  const Kind& kind = fixture.kind("resource.k8s.io/v1", "ResourceSlice");
  EXPECT_EQ(fixture.registry().remove(kind, {"", "b"}, {}, writer).error().text(),
            "resourceslices.resource.k8s.io \"b\" is forbidden: can only delete ResourceSlice with the same NodeName as the "
            "requesting node");
  EXPECT_TRUE(fixture.registry().remove(kind, {"", "a"}, {}, writer));
}

TEST(TaintNodesByCondition, a_new_node_takes_no_pods_yet) {
  AdmissionFixture fixture;
  ObjectPtr node = MUST(fixture.put(R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"n"}})"));
  const json::array& taints = get_array(node->json(), "spec.taints");
  ASSERT_EQ(taints.size(), 1u);
  EXPECT_EQ(get_string(taints[0], "key"), "node.kubernetes.io/not-ready");
  EXPECT_EQ(get_string(taints[0], "effect"), "NoSchedule");
}

}  // namespace
}  // namespace coracle::admission

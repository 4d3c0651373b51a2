// SPDX-License-Identifier: Apache-2.0
// What a node may access: its own objects and those of its pods, nothing else; and the messages of refusals.
#include "daemon/auth/node_authorizer.h"

#include <gtest/gtest.h>

#include "tests/daemon/auth/auth_fixture.h"

namespace coracle::auth {
namespace {

const User kNodeUser = user("system:node:one", {"system:nodes", "system:authenticated"});

class Nodes : public testing::Test {
 protected:
  Nodes() {
    fixture.make(kServiceAccount, R"({"metadata":{"name":"robot","namespace":"default"}})");
    fixture.make(
        kPod,
        R"({"metadata":{"name":"p","namespace":"default"},"spec":{"nodeName":"one","serviceAccountName":"robot","imagePullSecrets":[{"name":"pull"}],
        "containers":[{"name":"c","image":"i","env":[{"name":"A","valueFrom":{"secretKeyRef":{"name":"env","key":"k"}}}],"envFrom":[{"configMapRef":{"name":"from"}}]}],
        "volumes":[{"name":"v","secret":{"secretName":"vol"}},{"name":"w","projected":{"sources":[{"configMap":{"name":"proj"}}]}},{"name":"x","persistentVolumeClaim":{"claimName":"claim"}}]}})");
    fixture.make(
        kPod,
        R"({"metadata":{"name":"q","namespace":"default"},"spec":{"nodeName":"two","containers":[{"name":"c","image":"i"}],"volumes":[{"name":"v","secret":{"secretName":"foreign"}}]}})");
  }
  bool may(std::string verb, std::string resource, std::string name, std::string ns = "default", std::string group = "",
           std::string sub = "") {
    return fixture.may(kNodeUser, std::move(verb), std::move(resource), std::move(ns), std::move(name), std::move(group),
                       std::move(sub));
  }
  std::string why(std::string verb, std::string resource, std::string name, std::string ns = "default", std::string group = "",
                  std::string sub = "") {
    return fixture
        .decide(kNodeUser, std::move(verb), std::move(resource), std::move(ns), std::move(name), std::move(group), std::move(sub))
        .reason;
  }
  AuthFixture fixture;
};

TEST_F(Nodes, read_what_their_pods_refer_to) {
  for (const char* secret : {"pull", "env", "vol"}) EXPECT_TRUE(may("get", "secrets", secret)) << secret;
  for (const char* map : {"from", "proj"}) EXPECT_TRUE(may("watch", "configmaps", map)) << map;
  EXPECT_TRUE(may("get", "persistentvolumeclaims", "claim"));
  EXPECT_TRUE(may("create", "serviceaccounts", "robot", "default", "", "token"));
  EXPECT_TRUE(may("get", "pods", "p"));
  EXPECT_EQ(why("get", "secrets", "foreign"), "no relationship found between node 'one' and this object");
  EXPECT_EQ(why("get", "secrets", "vol", "kube-system"), "no relationship found between node 'one' and this object");
  EXPECT_EQ(why("list", "secrets", ""), "No Object name found");
  EXPECT_EQ(why("list", "secrets", "", ""), "can only read namespaced object of this type");
  EXPECT_EQ(why("delete", "secrets", "vol"), "can only read resources of this type");
  EXPECT_EQ(why("list", "persistentvolumeclaims", "claim"), "can only get individual resources of this type");
  EXPECT_EQ(why("get", "serviceaccounts", "robot"), "can only create tokens for individual service accounts");
  EXPECT_EQ(why("create", "serviceaccounts", "default", "default", "", "token"),
            "no relationship found between node 'one' and this object");
  EXPECT_FALSE(may("get", "pods", "q"));
}

TEST_F(Nodes, lose_it_with_the_pod) {
  MUST(fixture.registry().remove(kPod, {"default", "p"}, {.grace_period_seconds = 0}, {}));
  EXPECT_FALSE(may("get", "secrets", "vol"));
}

TEST_F(Nodes, get_nothing_by_pods_that_they_made_themselves) {
  // Admission refuses a mirror pod that refers to secrets. If one exists nevertheless, it grants nothing.
  json::value mirror = registry::RegistryFixture::parse(
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"m","namespace":"default","uid":"u","annotations":{"kubernetes.io/config.mirror":"x"}},
          "spec":{"nodeName":"one","containers":[{"name":"c","image":"i"}],"volumes":[{"name":"v","secret":{"secretName":"wanted"}}]}})");
  MUST(fixture.engine->write({&kPod, {"default", "m"}, mirror, Revision(0)}, engine::Durability::soft));
  EXPECT_FALSE(may("get", "secrets", "wanted"));
}

TEST_F(Nodes, write_their_own_objects_only) {
  std::string leases = "coordination.k8s.io";
  EXPECT_TRUE(may("update", "leases", "one", "kube-node-lease", leases));
  EXPECT_TRUE(may("create", "leases", "", "kube-node-lease", leases));
  EXPECT_EQ(why("update", "leases", "two", "kube-node-lease", leases),
            "can only access node lease with the same name as the requesting node");
  EXPECT_EQ(why("update", "leases", "one", "default", leases),
            "can only access leases in the \"kube-node-lease\" system namespace");
  EXPECT_TRUE(may("get", "nodes", "one", ""));
  EXPECT_EQ(why("get", "nodes", "two", ""), "node 'one' cannot read 'two', only its own Node object");
  EXPECT_TRUE(may("patch", "nodes", "one", "", "", "status"));
  EXPECT_TRUE(may("patch", "pods", "p", "default", "", "status"));
  EXPECT_TRUE(may("create", "events", ""));
  EXPECT_TRUE(may("create", "certificatesigningrequests", "", "", "certificates.k8s.io"));
  EXPECT_FALSE(may("delete", "nodes", "one", ""));
  EXPECT_FALSE(may("create", "deployments", "", "default", "apps"));
  EXPECT_FALSE(may("create", "pods", "p", "default", "", "exec"));
}

TEST_F(Nodes, write_what_belongs_to_their_volumes_and_devices) {
  const std::string storage = "storage.k8s.io", resource = "resource.k8s.io";
  EXPECT_TRUE(may("patch", "persistentvolumeclaims", "claim", "default", "", "status"));
  EXPECT_EQ(why("get", "persistentvolumeclaims", "claim", "default", "", "status"), "can only get/update/patch this type");
  EXPECT_EQ(why("patch", "persistentvolumeclaims", "claim"), "can only get individual resources of this type");
  EXPECT_EQ(why("list", "volumeattachments", "", "", storage), "can only get individual resources of this type");
  EXPECT_EQ(why("get", "volumeattachments", "a", "", storage), "no relationship found between node 'one' and this object");
  EXPECT_TRUE(may("create", "csinodes", "", "", storage));
  EXPECT_TRUE(may("update", "csinodes", "one", "", storage));
  EXPECT_EQ(why("list", "csinodes", "", "", storage), "can only get, create, update, patch, or delete a CSINode");
  EXPECT_EQ(why("get", "csinodes", "two", "", storage), "can only access CSINode with the same name as the requesting node");
  EXPECT_TRUE(may("create", "resourceslices", "", "", resource));
  EXPECT_EQ(why("list", "resourceslices", "", "", resource),
            "can only list/watch/deletecollection resourceslices with spec.nodeName field selector");
  EXPECT_EQ(why("get", "resourceclaims", "r", "default", resource), "no relationship found between node 'one' and this object");
}

TEST_F(Nodes, list_pods_of_their_own) {
  Attributes asked{"list", "", "pods", "", "", "", "", true, "spec.nodeName=one"};
  EXPECT_TRUE(fixture.authorizer.authorize(kNodeUser, asked).allowed);
  asked.field_selector = "spec.nodeName=two";
  EXPECT_FALSE(fixture.authorizer.authorize(kNodeUser, asked).allowed);
  asked.field_selector = "";
  EXPECT_EQ(fixture.authorizer.authorize(kNodeUser, asked).reason, "can only list/watch pods with spec.nodeName field selector");
}

TEST_F(Nodes, are_known_by_name_and_group) {
  EXPECT_FALSE(node_identity(user("system:node:one")));
  EXPECT_FALSE(node_identity(user("one", {"system:nodes"})));
  EXPECT_EQ(node_identity(kNodeUser), "one");
  EXPECT_FALSE(fixture.may(user("system:node:", {"system:nodes"}), "get", "nodes", "", "x"));
}

}  // namespace
}  // namespace coracle::auth
